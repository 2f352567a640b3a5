/** The first half of a guest's way in: whether it is to come here at all, and all that it will stand on. */
import { MIGRATION_UID_LABEL } from '#api/names.ts';
import { needsState, stateClaimIn } from '#api/persistent-state.ts';
import { VIRTUAL_MACHINE_INSTANCES, type VirtualMachineInstance } from '#api/virtual-machine-instance/kind.ts';
import { delay } from '#client/abort.ts';
import type { Reader } from '#client/client.ts';
import type { Informer } from '#client/informer.ts';
import type { Pod } from '#kube/core-kinds.ts';
import type { Stored } from '#kube/meta.ts';
import { hasEnded } from '#kube/pod-phase.ts';
import { backoffMs } from '#lib/backoff.ts';
import type { Clock } from '#lib/clock.ts';
import { isActivePod } from '#node/domains/active-pod.ts';
import type { NodeFacts } from '#node/domains/domain-world.ts';
import { PODS_BY_INSTANCE } from '#node/domains/observe-domain.ts';
import { getIfExists, volumeLookups, type GuestKernel } from '#node/domains/start-domain.ts';
import type { Turns } from '#node/domains/turns.ts';
import type { Hypervisor } from '#node/hypervisor/hypervisor.ts';
import type { Incoming, MigrationDoor } from '#node/hypervisor/migration.ts';
import type { Begin } from '#node/migration/messages.ts';
import { retarget } from '#node/migration/retarget.ts';
import { isHere } from '#node/migration/source-place.ts';
import type { PreparedVolume, Volumes } from '#node/volumes-port.ts';

export interface PrepareParts {
  readonly client: Reader;
  readonly pods: Informer<Pod>;
  readonly hypervisor: Hypervisor;
  readonly volumes: Volumes;
  readonly turns: Turns;
  readonly guest: GuestKernel | undefined;
  readonly node: NodeFacts;
  readonly clock: Clock;
  /** An earlier guest of this id is to be cleared away. */
  onChange(id: string): void;
}

export interface PrepareOptions {
  readonly signal: AbortSignal;
  /** From now on what fails is this pod's business. */
  onFound(vmi: Stored<VirtualMachineInstance>): void;
}

interface Found {
  readonly vmi: Stored<VirtualMachineInstance>;
  readonly pod: Stored<Pod>;
}

/** What is not here yet comes within this, or not at all: the pod in our cache, the word of the instance, a volume. */
const WAIT_MS = 30_000;
const BACKOFF = { firstMs: 50, maxMs: 1000 };
const DISK_PREFIX = 'disk-';

/** Waits for what is on its way; throws, with a sentence for people, where the guest cannot come. */
export async function prepareGuest(
  begin: Begin,
  from: string,
  parts: PrepareParts,
  { signal, onFound }: PrepareOptions,
): Promise<{ readonly vmi: Stored<VirtualMachineInstance>; readonly door: MigrationDoor }> {
  const found = await patiently(() => lookUp(begin, from, parts, signal), parts, signal);
  onFound(found.vmi);
  const reach = await reachOf(begin, parts.node);
  const door = await patiently(
    () => parts.turns.take(begin.instance.uid, () => receive(begin, from, reach, found, parts, signal)),
    parts,
    signal,
  );
  return { vmi: found.vmi, door };
}

/** What may be otherwise in a moment; everything else is thrown. */
interface NotYet {
  readonly notYet: string;
}

async function patiently<T extends object>(
  look: () => Promise<T | NotYet>,
  { clock }: PrepareParts,
  signal: AbortSignal,
): Promise<T> {
  const untilMs = clock.elapsed() + WAIT_MS;
  for (let tries = 1; ; tries++) {
    signal.throwIfAborted();
    const seen = await look();
    if (!('notYet' in seen)) return seen;
    if (clock.elapsed() >= untilMs) throw new Error(seen.notYet);
    await delay(clock, backoffMs(tries, BACKOFF), { signal });
  }
}

/** Live: who asks is only believed where the controller of migrations says the same. */
async function lookUp(
  { uid, instance }: Begin,
  from: string,
  { client, pods, node }: PrepareParts,
  signal: AbortSignal,
): Promise<Found | NotYet> {
  const { namespace, name } = instance;
  const vmi = await getIfExists(client, VIRTUAL_MACHINE_INSTANCES, { namespace, name }, signal);
  if (vmi?.metadata.uid !== instance.uid) throw new Error(`there is no instance ${namespace}/${name} of this uid`);
  const { migrationState: told } = vmi.status ?? {};
  const isTold = told?.migrationUid === uid && told.sourceNode === from && told.targetNode === node.name;
  if (!isTold || told.completed === true) throw new Error(`the instance ${namespace}/${name} is not to come here`);
  const pod = pods
    .byIndex(PODS_BY_INSTANCE, instance.uid)
    .find(({ metadata }) => metadata.labels?.[MIGRATION_UID_LABEL] === uid && metadata.name === told.targetPod);
  if (pod === undefined || !isActivePod(pod, vmi)) return { notYet: `the pod ${told.targetPod ?? ''} is not known here` };
  if (pod.metadata.deletionTimestamp !== undefined || hasEnded(pod)) {
    throw new Error(`the pod ${pod.metadata.name} has come to its end`);
  }
  return { vmi, pod };
}

async function reachOf({ place }: Begin, { hostIp }: NodeFacts): Promise<Incoming['reach']> {
  if (place !== undefined && (await isHere(place))) return { is: 'local' };
  return { is: 'network', host: hostIp };
}

async function receive(
  begin: Begin,
  peer: string,
  reach: Incoming['reach'],
  { vmi, pod }: Found,
  parts: PrepareParts,
  signal: AbortSignal,
): Promise<MigrationDoor | NotYet> {
  const { hypervisor, guest, node } = parts;
  const { uid, instance, startedAtMs, paused, disks, definition } = begin;
  if (hypervisor.get(instance.uid) !== undefined) {
    parts.onChange(instance.uid);
    return { notYet: 'an earlier guest of this instance is still here' };
  }
  const prepared = await prepareVolumes(begin, { vmi, pod }, parts, signal);
  if ('notYet' in prepared) return prepared;
  const { capabilities } = node;
  const ground = { instance, volumes: prepared.volumes, kernel: guest, capabilities, spec: vmi.spec };
  const here = retarget(definition, { ...ground, stateDirectory: prepared.stateDirectory });
  if ('refused' in here) throw new Error(here.refused);
  const incoming = { uid, peer, startedAtMs, paused, disks, reach };
  return await hypervisor.receive(here.definition, incoming, { signal });
}

interface Prepared {
  readonly volumes: ReadonlyMap<string, PreparedVolume>;
  readonly stateDirectory: string | undefined;
}

async function prepareVolumes(
  { disks, contents }: Begin,
  { vmi, pod }: Found,
  { client, volumes, hypervisor }: PrepareParts,
  signal: AbortSignal,
): Promise<Prepared | NotYet> {
  const lookups = volumeLookups(vmi.metadata.namespace, client, signal);
  const hasEndedHere = (id: string) => hypervisor.get(id)?.current.state === 'ended';
  const options = {
    signal,
    hasEnded: hasEndedHere,
    moving: new Map(disks.map(({ deviceId, ...disk }) => [volumeOf(deviceId), disk])),
    contents: new Map(Object.entries(contents).map(([id, text]) => [volumeOf(id), Buffer.from(text, 'base64')])),
  };
  const prepared = await volumes.prepareIncoming(vmi, lookups, options);
  if (prepared.is !== 'ready') return orThrow(prepared);
  const claim = stateClaimIn(pod);
  if (claim === undefined || !needsState(vmi.spec)) return { volumes: prepared.volumes, stateDirectory: undefined };
  const state = await volumes.prepareState(vmi.metadata.uid, claim, lookups, { signal, hasEnded: hasEndedHere });
  if (state.is !== 'ready') return orThrow(state);
  return { volumes: prepared.volumes, stateDirectory: state.directory };
}

function orThrow({ is, message }: { readonly is: 'waiting' | 'failed'; readonly message: string }): NotYet {
  if (is === 'failed') throw new Error(message);
  return { notYet: message };
}

function volumeOf(deviceId: string): string {
  return deviceId.startsWith(DISK_PREFIX) ? deviceId.slice(DISK_PREFIX.length) : deviceId;
}
