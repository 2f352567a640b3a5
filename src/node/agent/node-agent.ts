/**
 * The agent of one node: finds the guests that run already, registers the node, and tends pods, guests, volumes and their
 * snapshots until it is stopped. Stopping it, or killing it, stops no guest.
 *
 * Order matters at the start: guests are found before anything is decided, and nothing is decided before every cache has
 * synced. An agent that cannot read the API waits and leaves everything as it is.
 */
import { NODE_NAME_LABEL } from '#api/names.ts';
import { VIRTUAL_MACHINE_INSTANCES, type VirtualMachineInstance } from '#api/virtual-machine-instance/kind.ts';
import type { Client } from '#client/client.ts';
import { Informer, type InformerOptions } from '#client/informer.ts';
import { NODES, PERSISTENT_VOLUMES, PODS, type Pod } from '#kube/core-kinds.ts';
import type { KubeObject } from '#kube/meta.ts';
import { VOLUME_SNAPSHOT_CONTENTS } from '#kube/volume-snapshot-kinds.ts';
import type { Clock } from '#lib/clock.ts';
import type { Log } from '#lib/log.ts';
import { containerLog } from '#node/agent/container-logs.ts';
import { diskDoor } from '#node/agent/disk-door.ts';
import { startFillKeeper } from '#node/agent/fill-keeper.ts';
import { startSnapshotKeeper } from '#node/agent/snapshot-keeper.ts';
import { startVolumeKeeper } from '#node/agent/volume-keeper.ts';
import { isMoving } from '#node/domains/decide-outgoing.ts';
import { DeviceBook } from '#node/domains/device-book.ts';
import { startDomainController } from '#node/domains/domain-controller.ts';
import { DomainNotes } from '#node/domains/domain-notes.ts';
import type { NodeFacts } from '#node/domains/domain-world.ts';
import { HotplugNotes } from '#node/domains/hotplug-notes.ts';
import { INSTANCES_BY_UID, instanceUids } from '#node/domains/observe-domain.ts';
import type { GuestKernel } from '#node/domains/start-domain.ts';
import { Turns } from '#node/domains/turns.ts';
import { recordWatchdogEvents } from '#node/domains/watchdog-events.ts';
import { hasDisplay } from '#node/definition/has-display.ts';
import { NoDisplay, type EndpointAgent } from '#node/endpoint/endpoint-agent.ts';
import { AgentReader } from '#node/guest-agent/agent-reader.ts';
import { readGuest } from '#node/guest-agent/read-guest.ts';
import { GuestReach } from '#node/guest-ports/reach-guest.ts';
import { openHostApi } from '#node/host-api/host-api.ts';
import { HypervisorError, type Domain, type Hypervisor } from '#node/hypervisor/hypervisor.ts';
import { Migrations } from '#node/migration/migrations.ts';
import { OwnWrites } from '#node/pods/own-writes.ts';
import { PodAccess, type ProgramAccess } from '#node/pods/pod-access.ts';
import { ProgramPods } from '#node/pods/program-pods.ts';
import type { RunProgram } from '#node/pods/program.ts';
import { ProbeKeeper } from '#node/probes/probe-keeper.ts';
import { readHostFacts } from '#node/registration/host-facts.ts';
import type { NodeDescription } from '#node/registration/node-object.ts';
import { register } from '#node/registration/registration.ts';
import type { Peers } from '#node/peers-port.ts';
import type { Volumes } from '#node/volumes-port.ts';
import { EventRecorder } from '#runtime/events.ts';

export interface NodeAgentOptions {
  readonly name: string;
  /** Acts as system:node:<name>. */
  readonly client: Client;
  readonly hypervisor: Hypervisor;
  readonly volumes: Volumes;
  /** The files of the built-in guest, where there are any. */
  readonly guest: GuestKernel | undefined;
  /** Where the node's HTTPS endpoint listens; it is told in the Node. */
  readonly endpoint:
    | { readonly address: string; readonly port: number; readonly hostname?: string | undefined }
    | undefined;
  /** Under which user guests run, where that is not our own. */
  readonly guestUser: { readonly uid: number; readonly gid: number } | undefined;
  /** That the Node is made with; later they are the administrator's. */
  readonly taints?: NodeDescription['taints'];
  /** The directory of the node, for VMs of the host API; without one it can only be read. */
  readonly hostDir?: string;
  readonly runProgram?: RunProgram;
  /** How programs that pods run reach the API; without it they do not. */
  readonly programAccess?: ProgramAccess;
  /** Without them guests stay where they are. */
  readonly peers?: Peers;
  readonly clock: Clock;
  readonly log: Log;
  /** Gives up a start that waits for the API, and ends what runs as `stop` does. */
  readonly signal?: AbortSignal;
}

export interface RunningAgent extends EndpointAgent {
  readonly name: string;
  /** Resolves when others find this agent through its Node; or when it stops. */
  readonly registered: Promise<void>;
  /** Every domain of this node. */
  domains(): readonly Domain[];
  /** Resolves when nothing is to be done right now; what is due later does not count. */
  idle(): Promise<void>;
  /** Lets go of everything; guests go on. The hypervisor is closed by whoever opened it. */
  stop(): Promise<void>;
}

const LOCALHOST = '127.0.0.1';

/** Resolves when it tends what is bound to the node. Rejects where it cannot; nothing of it is left then. */
export async function startNodeAgent(options: NodeAgentOptions): Promise<RunningAgent> {
  options.signal?.throwIfAborted();
  const stopping = new AbortController();
  options.signal?.addEventListener('abort', () => stopping.abort(), { once: true });
  try {
    const agent = await start(options, stopping);
    options.signal?.addEventListener('abort', () => void agent.stop(), { once: true });
    return agent;
  } catch (error) {
    stopping.abort();
    throw error;
  }
}

async function start(options: NodeAgentOptions, stopping: AbortController): Promise<RunningAgent> {
  const { name, client, hypervisor, volumes, endpoint, guestUser, clock } = options;
  const { signal } = stopping;
  const log = options.log.child({ node: name });
  await hypervisor.adopt();
  const capabilities = await hypervisor.capabilities();
  const hostIp = endpoint?.address ?? LOCALHOST;
  const node: NodeFacts = { name, hostIp, capabilities, guestUid: guestUser?.uid };

  const caches = startCaches(options, log, signal);
  const { pods, vmis, nodes, persistentVolumes, contents } = caches;
  await caches.synced();
  await releaseLeftVolumes(options, pods, log);

  const description = {
    name,
    host: await readHostFacts(),
    capabilities,
    address: hostIp,
    port: endpoint?.port,
    hostname: endpoint?.hostname,
    taints: options.taints ?? [],
  };
  const registration = register({ client, nodes, description, clock, log, signal });
  const events = new EventRecorder({ writer: client, clock, log, component: 'virt-handler', instance: name, signal });
  const turns = new Turns();
  const book = new DeviceBook({ hypervisor, clock });
  const agents = new AgentReader({ hypervisor, clock, log });
  const host = await openHostApi({
    dir: options.hostDir,
    guestUser,
    hypervisor,
    book,
    agents,
    turns,
    capabilities,
    clock,
    log,
  });
  const shared = { client, pods, vmis, hypervisor, volumes, turns, clock, log, signal };
  const tending = { ...shared, guest: options.guest, node, notes: new DomainNotes(), hotplugNotes: new HotplugNotes() };
  const migrations = new Migrations({ ...tending, peers: options.peers, events });
  const ports = new GuestReach({ hypervisor, agents, clock });
  const probes = new ProbeKeeper({ hypervisor, ports, events, clock, log });
  const domains = startDomainController({
    ...tending,
    agents,
    probes,
    readings: book,
    migrations,
    ownPods: new OwnWrites<Pod>(),
    ownVmis: new OwnWrites<VirtualMachineInstance>(),
    events,
  });
  const leaveWatchdogs = recordWatchdogEvents({ hypervisor, vmiOf: (id) => vmis.byIndex(INSTANCES_BY_UID, id)[0], events });
  const access = options.programAccess && new PodAccess({ ...options.programAccess, client, clock, signal });
  await access?.clear();
  const programs = new ProgramPods({ ...shared, runProgram: options.runProgram ?? cannotRun, access, hostIp });
  const keeping = { ...shared, node: name, persistentVolumes, contents, events };
  const keepers = [startVolumeKeeper(keeping), startFillKeeper(keeping), startSnapshotKeeper(keeping)];
  const parts = [registration, agents, domains, programs, ...keepers];
  const disks = diskDoor(shared);

  return {
    name,
    registered: registration.registered,
    domains: () => hypervisor.list(),
    async idle() {
      // One may give another something to do.
      for (let round = 0; round < IDLE_ROUNDS; round++) for (const part of parts) await part.idle();
      await events.idle();
    },
    async stop() {
      stopping.abort();
      probes.stop();
      ports.stop();
      leaveWatchdogs();
      await Promise.all([migrations.stop(), ...parts.map((part) => part.stop()), caches.stopped()]);
    },
    ...endpointAgent({ hypervisor, ports, vmis, turns, migrations }),
    ...(options.peers && { migrations }),
    ...(disks && { disks }),
    host,
    logs: (namespace, pod, container) => containerLog({ pods, programs, hypervisor }, { namespace, pod, container }),
  };
}

const IDLE_ROUNDS = 2;

/** Before anything is prepared. What cannot be released now is there at the next start, too: no reason to tend nothing. */
async function releaseLeftVolumes(
  { hypervisor, volumes }: NodeAgentOptions,
  pods: Informer<Pod>,
  log: Log,
): Promise<void> {
  const wanted = new Set(pods.list().flatMap(instanceUids));
  try {
    await volumes.releaseUnwanted((id) => wanted.has(id) || hypervisor.get(id) !== undefined);
  } catch (err) {
    log.error({ err }, 'Cannot release what earlier guests left of their volumes');
  }
}

function startCaches({ name, client, clock }: NodeAgentOptions, log: Log, signal: AbortSignal) {
  const running: Promise<void>[] = [];
  const cache = <T extends KubeObject>(options: Omit<InformerOptions<T>, 'reader' | 'clock' | 'log'>): Informer<T> => {
    const informer = new Informer<T>({ reader: client, clock, log, ...options });
    running.push(informer.start({ signal }));
    return informer;
  };
  const pods = cache({ type: PODS, fieldSelector: `spec.nodeName=${name}` });
  const vmis = cache({ type: VIRTUAL_MACHINE_INSTANCES, labelSelector: `${NODE_NAME_LABEL}=${name}` });
  const nodes = cache({ type: NODES, fieldSelector: `metadata.name=${name}` });
  const persistentVolumes = cache({ type: PERSISTENT_VOLUMES });
  const contents = cache({ type: VOLUME_SNAPSHOT_CONTENTS });
  return {
    pods,
    vmis,
    nodes,
    persistentVolumes,
    contents,
    // Guests are tended also where nobody has brought the kinds of snapshots along: whoever works on those waits for them.
    synced: () => Promise.all([pods.synced(), vmis.synced(), nodes.synced(), persistentVolumes.synced()]),
    stopped: () => Promise.all(running),
  };
}

/** What people ask of a guest takes its turn between what the agent does. */
function endpointAgent({
  hypervisor,
  ports,
  vmis,
  turns,
  migrations,
}: {
  readonly hypervisor: Hypervisor;
  readonly ports: GuestReach;
  readonly vmis: Informer<VirtualMachineInstance>;
  readonly turns: Turns;
  readonly migrations: Migrations;
}): Omit<EndpointAgent, 'logs' | 'host' | 'disks' | 'migrations'> {
  const take = (id: string, work: (id: string) => Promise<void>) =>
    turns.take(id, async () => {
      // Whoever asked may have looked before it began.
      const isAway = migrations.isSending(id) || isMoving(hypervisor.get(id), undefined);
      if (isAway) throw new HypervisorError('VMI is migrating');
      await work(id);
    });
  /** Of guests that have none, people are told in other words. */
  const onDisplay = async <T>(id: string, look: () => Promise<T>): Promise<T> => {
    const inspected = hypervisor.inspect(id);
    if (inspected !== undefined && !hasDisplay(inspected.definition)) throw new NoDisplay();
    return await look();
  };
  return {
    find(namespace, vmiName) {
      const name = `${namespace}/${vmiName}`;
      const known = hypervisor.get(vmis.get(name)?.metadata.uid ?? '');
      if (known !== undefined) return known;
      // An ended one may still be there beside its successor of the same name.
      const found = hypervisor.list().filter((domain) => domain.name === name && domain.origin === undefined);
      return found.find(({ current }) => current.state !== 'ended') ?? found.at(-1);
    },
    pause: (id) => take(id, () => hypervisor.pause(id)),
    resume: (id) => take(id, () => hypervisor.resume(id)),
    softReboot: (id) => take(id, () => hypervisor.softReboot(id)),
    reset: (id) => take(id, () => hypervisor.reset(id)),
    freeze: (id, seconds) => take(id, () => hypervisor.freeze(id, { timeoutMs: seconds * 1000, why: 'asked' })),
    unfreeze: (id) => take(id, () => hypervisor.thaw(id)),
    readGuest: (id, what) => readGuest(hypervisor, id, what),
    openConsole: (id) => hypervisor.openConsole(id),
    openDisplay: (id) => onDisplay(id, () => hypervisor.openDisplay(id)),
    screenshot: (id, options) => onDisplay(id, () => hypervisor.screenshot(id, options)),
    openPort: (id, port) => ports.openPort(id, port),
  };
}

const cannotRun: RunProgram = () => ({
  onOutput: (listener) => listener(Buffer.from('This node cannot run programs.\n')),
  exited: Promise.resolve(127),
  kill() {},
});
