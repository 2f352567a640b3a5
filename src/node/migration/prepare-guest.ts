/** Checks that an incoming guest is expected, and prepares its volumes and the domain that receives it. */
import { readInstance } from '#node/guests/read-instance.ts';
import { MIGRATION_UID_LABEL } from '#api/names.ts';
import { needsState, stateClaimIn } from '#api/storage/persistent-state.ts';
import type { VirtualMachineInstance } from '#api/virtual-machine-instance/kind.ts';
import { delay } from '#client/abort.ts';
import type { Reader } from '#client/client.ts';
import type { Informer } from '#client/informer.ts';
import type { Pod } from '#kube/core-kinds.ts';
import type { Stored } from '#kube/meta.ts';
import { hasEnded } from '#kube/pod-phase.ts';
import { backoffMs } from '#lib/backoff.ts';
import type { Clock } from '#lib/clock.ts';
import { isActivePod, PODS_BY_INSTANCE } from '#node/guests/guest-objects.ts';
import type { InstanceNetworks } from '#node/guests/instance-networks.ts';
import type { NodeFacts, GuestKernel } from '#node/guests/node-facts.ts';
import { volumeLookups, hasEndedIn } from '#node/guests/volume-lookups.ts';
import type { DomainLocks } from '#node/guests/domain-locks.ts';
import type { Hypervisor } from '#node/hypervisor/hypervisor.ts';
import type { IncomingMigration, MigrationEndpoint } from '#node/hypervisor/migration.ts';
import type { BeginMessage } from '#node/migration/messages.ts';
import { retarget } from '#node/migration/retarget.ts';
import { isLocalDirectory } from '#node/migration/source-directory.ts';
import type { PreparedVolume, Volumes } from '#node/volumes/volumes-port.ts';

export interface PrepareParts {
  readonly client: Reader;
  readonly pods: Informer<Pod>;
  readonly hypervisor: Hypervisor;
  readonly volumes: Volumes;
  readonly locks: DomainLocks;
  readonly guest: GuestKernel | undefined;
  readonly node: NodeFacts;
  /** Looks up networks; undefined if guests have no network namespaces on this node. */
  readonly instanceNetworks?: InstanceNetworks | undefined;
  readonly clock: Clock;
  /** Called when an earlier guest with this id has to be removed. */
  onChange(id: string): void;
}

interface PrepareOptions {
  readonly signal: AbortSignal;
  /** Called when the instance and its pod are known; later failures are reported in that pod. */
  onFound(vmi: Stored<VirtualMachineInstance>): void;
}

interface TargetObjects {
  readonly vmi: Stored<VirtualMachineInstance>;
  readonly pod: Stored<Pod>;
}

/** Limit of the wait for the pod in the cache, for the instance's status, and for volumes. */
const READY_TIMEOUT_MS = 30_000;
const BACKOFF = { firstMs: 50, maxMs: 1000 };
const DISK_PREFIX = 'disk-';

/** Waits until everything is ready. Throws if the guest cannot be received, with a message for the user. */
export async function prepareGuest(
  begin: BeginMessage,
  from: string,
  parts: PrepareParts,
  { signal, onFound }: PrepareOptions,
): Promise<{ readonly vmi: Stored<VirtualMachineInstance>; readonly endpoint: MigrationEndpoint }> {
  const found = await retryUntilReady(() => findTarget(begin, from, parts, signal), parts, signal);
  onFound(found.vmi);
  const reach = await findReach(begin, parts.node);
  const endpoint = await retryUntilReady(
    () => parts.locks.run(begin.instance.uid, () => receive(begin, from, reach, found, parts, signal)),
    parts,
    signal,
  );
  return { vmi: found.vmi, endpoint };
}

/** A refusal that may be resolved soon. All others are thrown. */
interface NotReady {
  readonly notReady: string;
}

async function retryUntilReady<T extends object>(
  attempt: () => Promise<T | NotReady>,
  { clock }: PrepareParts,
  signal: AbortSignal,
): Promise<T> {
  const untilMs = clock.elapsed() + READY_TIMEOUT_MS;
  for (let tries = 1; ; tries++) {
    signal.throwIfAborted();
    const result = await attempt();
    if (!('notReady' in result)) return result;
    if (clock.elapsed() >= untilMs) throw new Error(result.notReady);
    await delay(clock, backoffMs(tries, BACKOFF), { signal });
  }
}

/**
 * Finds the instance and its pod. Reads the instance from the API: the request of the source counts only if the migration
 * controller has written the same to the status.
 */
async function findTarget(
  { uid, instance }: BeginMessage,
  from: string,
  { client, pods, node }: PrepareParts,
  signal: AbortSignal,
): Promise<TargetObjects | NotReady> {
  const { namespace, name } = instance;
  const vmi = await readInstance(client, { namespace, name }, { signal });
  if (vmi?.metadata.uid !== instance.uid)
    throw new Error(`VirtualMachineInstance "${namespace}/${name}" with uid ${instance.uid} does not exist`);
  const { migrationState: state } = vmi.status ?? {};
  const isExpected = state?.migrationUid === uid && state.sourceNode === from && state.targetNode === node.name;
  if (!isExpected || state.completed === true)
    throw new Error(
      `the status of VirtualMachineInstance "${namespace}/${name}" does not name this migration to node ${node.name}`,
    );
  const pod = pods
    .byIndex(PODS_BY_INSTANCE, instance.uid)
    .find(({ metadata }) => metadata.labels?.[MIGRATION_UID_LABEL] === uid && metadata.name === state.targetPod);
  if (pod === undefined || !isActivePod(pod, vmi))
    return { notReady: `pod "${state.targetPod ?? ''}" is not known on node ${node.name}` };
  if (pod.metadata.deletionTimestamp !== undefined || hasEnded(pod)) {
    throw new Error(`pod "${pod.metadata.name}" has ended or is being deleted`);
  }
  return { vmi, pod };
}

async function findReach({ place }: BeginMessage, { hostIp }: NodeFacts): Promise<IncomingMigration['transport']> {
  if (place !== undefined && (await isLocalDirectory(place))) return { type: 'local' };
  return { type: 'network', host: hostIp };
}

async function receive(
  begin: BeginMessage,
  peer: string,
  reach: IncomingMigration['transport'],
  { vmi, pod }: TargetObjects,
  parts: PrepareParts,
  signal: AbortSignal,
): Promise<MigrationEndpoint | NotReady> {
  const { hypervisor, guest, node } = parts;
  const { uid, instance, startedAtMs, paused, disks, definition } = begin;
  if (hypervisor.get(instance.uid) !== undefined) {
    parts.onChange(instance.uid);
    return { notReady: 'an earlier guest of the instance is still on the target node' };
  }
  const prepared = await prepareIncomingVolumes(begin, { vmi, pod }, parts, signal);
  if ('notReady' in prepared) return prepared;
  // A guest that an earlier version started keeps its bridges and its user mode, whatever its networks are called now.
  const network = definition.network && (await parts.instanceNetworks?.resolve(vmi, pod, signal));
  if (network !== undefined && network.is !== 'ready') return notReadyOrThrow(network);
  const { capabilities } = node;
  const target = {
    instance,
    volumes: prepared.volumes,
    kernel: guest,
    capabilities,
    spec: vmi.spec,
    network: network?.facts,
  };
  const result = retarget(definition, { ...target, stateDirectory: prepared.stateDirectory });
  if ('refused' in result) throw new Error(result.refused);
  const incoming = { uid, peer, startedAtMs, paused, disks, transport: reach };
  return await hypervisor.receive(result.definition, incoming, { signal });
}

interface PreparedStorage {
  readonly volumes: ReadonlyMap<string, PreparedVolume>;
  readonly stateDirectory: string | undefined;
}

async function prepareIncomingVolumes(
  { disks, contents }: BeginMessage,
  { vmi, pod }: TargetObjects,
  { client, volumes, hypervisor }: PrepareParts,
  signal: AbortSignal,
): Promise<PreparedStorage | NotReady> {
  const lookups = volumeLookups(vmi.metadata.namespace, client, signal);
  const hasEndedHere = hasEndedIn(hypervisor);
  const options = {
    signal,
    hasEnded: hasEndedHere,
    moving: new Map(disks.map(({ deviceId, ...disk }) => [volumeName(deviceId), disk])),
    contents: new Map(Object.entries(contents).map(([id, text]) => [volumeName(id), Buffer.from(text, 'base64')])),
  };
  const prepared = await volumes.prepareIncoming(vmi, lookups, options);
  if (prepared.is !== 'ready') return notReadyOrThrow(prepared);
  const claim = stateClaimIn(pod);
  if (claim === undefined || !needsState(vmi.spec)) return { volumes: prepared.volumes, stateDirectory: undefined };
  const state = await volumes.prepareState(vmi.metadata.uid, claim, lookups, { signal, hasEnded: hasEndedHere });
  if (state.is !== 'ready') return notReadyOrThrow(state);
  return { volumes: prepared.volumes, stateDirectory: state.directory };
}

function notReadyOrThrow({ is, message }: { readonly is: 'waiting' | 'failed'; readonly message: string }): NotReady {
  if (is === 'failed') throw new Error(message);
  return { notReady: message };
}

function volumeName(deviceId: string): string {
  return deviceId.startsWith(DISK_PREFIX) ? deviceId.slice(DISK_PREFIX.length) : deviceId;
}
