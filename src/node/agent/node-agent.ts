/**
 * The agent of one node: adopts the running guests, registers the node, and reconciles pods, guests, volumes and snapshots
 * until it is stopped. Guests keep running when the agent is stopped or killed.
 *
 * The order at the start matters: guests are adopted before anything is decided, and nothing is decided before every cache
 * has synced. An agent that cannot read the API waits and leaves everything as it is.
 */
import { NODE_NAME_LABEL } from '#api/names.ts';
import { DEFAULT_NETWORK, GUEST_NETWORKS, type GuestNetwork } from '#api/network/guest-network.ts';
import { VIRTUAL_MACHINE_INSTANCES, type VirtualMachineInstance } from '#api/virtual-machine-instance/kind.ts';
import type { Client } from '#client/client.ts';
import { Informer, type InformerOptions } from '#client/informer.ts';
import { NODES, PERSISTENT_VOLUMES, PODS, type Pod } from '#kube/core-kinds.ts';
import type { KubeObject, Stored } from '#kube/meta.ts';
import { VOLUME_SNAPSHOT_CONTENTS } from '#kube/volume-snapshot-kinds.ts';
import type { Clock } from '#lib/clock.ts';
import type { Log } from '#lib/log.ts';
import { containerLog } from '#node/agent/container-logs.ts';
import { createDiskAccess } from '#node/storage/disk-access.ts';
import { startFillController } from '#node/storage/fill-controller.ts';
import { startSnapshotController } from '#node/storage/snapshot-controller.ts';
import { startVolumeController } from '#node/storage/volume-controller.ts';
import { DeviceReadings } from '#node/guests/device-readings.ts';
import { startDomainController } from '#node/domains/domain-controller.ts';
import { DomainNotes } from '#node/guests/domain-notes.ts';
import type { NodeFacts, GuestKernel } from '#node/guests/node-facts.ts';
import { HotplugNotes } from '#node/guests/hotplug-notes.ts';
import { INSTANCES_BY_UID, instanceUids } from '#node/guests/guest-objects.ts';
import { InstanceNetworks } from '#node/guests/instance-networks.ts';
import { DomainLocks } from '#node/guests/domain-locks.ts';
import { recordWatchdogEvents } from '#node/domains/watchdog-events.ts';
import { hasDisplay } from '#node/hardware/domain-definition.ts';
import { NoDisplayError, type EndpointAgent } from '#node/endpoint/endpoint-agent.ts';
import { AgentReader } from '#node/guest-agent/agent-reader.ts';
import { readGuest } from '#node/guest-agent/read-guest.ts';
import { GuestPortConnector } from '#node/guest-ports/guest-port-connector.ts';
import { openHostApi } from '#node/host-api/host-api.ts';
import { HypervisorError, isDomainMoving, type DomainInfo, type Hypervisor } from '#node/hypervisor/hypervisor.ts';
import { Migrations } from '#node/migration/migrations.ts';
import type { PodNetworks } from '#node/network/pod-networks.ts';
import { OwnWrites } from '#node/pods/own-writes.ts';
import { PodAccess, type ProgramAccess } from '#node/pods/pod-access.ts';
import { ProgramPods } from '#node/pods/program-pods.ts';
import type { RunProgram } from '#node/pods/program.ts';
import { ProbeRunner } from '#node/probes/probe-runner.ts';
import { readHostFacts } from '#node/registration/host-facts.ts';
import type { NodeDescription } from '#node/registration/node-object.ts';
import { register } from '#node/registration/registration.ts';
import { followPeers, tunnelAddressOf } from '#node/registration/tunnel-peers.ts';
import type { Peers } from '#node/migration/peers.ts';
import { ROUTED_SERVICES, ROUTED_SLICES } from '#node/services/kinds.ts';
import type { RuleSets } from '#node/services/nft.ts';
import { HOST_NODES, startServiceRouting } from '#node/services/service-routing.ts';
import type { ServiceNetwork } from '#node/services/service-table.ts';
import type { Volumes } from '#node/volumes/volumes-port.ts';
import { EventRecorder } from '#runtime/events.ts';

interface NodeAgentOptions {
  readonly name: string;
  /** Client with the identity system:node:<name>. */
  readonly client: Client;
  readonly hypervisor: Hypervisor;
  readonly volumes: Volumes;
  /** The networks of the hypervisor's guests; without them, guests have no network namespaces. */
  readonly networks?: NodeNetworking | undefined;
  /** Files of the built-in guest, if they are installed. */
  readonly guest: GuestKernel | undefined;
  /** Address of the node's HTTPS endpoint, which is published in the Node. */
  readonly endpoint:
    | { readonly address: string; readonly port: number; readonly hostname?: string | undefined }
    | undefined;
  /** True if each guest runs in a sandbox, as a user of its own. */
  readonly sandboxed: boolean;
  /** Taints of a new Node. The administrator may change them later. */
  readonly taints?: NodeDescription['taints'];
  /** Directory for VMs of the host API; without it the host API is read-only. */
  readonly hostDir?: string;
  readonly runProgram?: RunProgram;
  /** Access of programs in pods to the API; without it they have none. */
  readonly programAccess?: ProgramAccess;
  /** Routes Services on this host, for the guests of the default network. Without it, another program does that. */
  readonly services?: {
    readonly rules: RuleSets;
    hostsDir(key: string): string;
    planNetwork(network: Stored<GuestNetwork>): ServiceNetwork;
  };
  /** Connections to other nodes; without them guests cannot be migrated. */
  readonly peers?: Peers;
  readonly clock: Clock;
  readonly log: Log;
  /** Aborts a start that waits for the API, and stops a running agent like `stop`. */
  readonly signal?: AbortSignal;
}

interface NodeNetworking {
  /** The networks that the hypervisor connects its guests to (connect-guests.ts). */
  readonly podNetworks: PodNetworks;
  /** Returns the CNI configuration list of the host, as JSON, or undefined if it has none. */
  readonly hostConfig: () => Promise<string | undefined>;
  /** True for simulated guests, which run without a pod network. */
  readonly isSimulated?: boolean;
}

export interface RunningAgent extends EndpointAgent {
  readonly name: string;
  /** Resolves when the Node has the address of this agent, or when the agent stops. */
  readonly registered: Promise<void>;
  /** Returns all domains of this node. */
  domains(): readonly DomainInfo[];
  /** Resolves when no work is due now. */
  idle(): Promise<void>;
  /** Stops the agent; guests keep running. The caller closes the hypervisor. */
  stop(): Promise<void>;
}

const LOCALHOST = '127.0.0.1';

/** Starts an agent; resolves when its control loops run. If it rejects, nothing is left running. */
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
  const { name, client, hypervisor, volumes, endpoint, sandboxed, clock } = options;
  const { signal } = stopping;
  const log = options.log.child({ node: name });
  await hypervisor.adopt();
  const capabilities = await hypervisor.capabilities();
  const hostIp = endpoint?.address ?? LOCALHOST;
  const node: NodeFacts = { name, hostIp, capabilities, sandboxed };

  const caches = startCaches(options, log, signal);
  const { pods, vmis, nodes, persistentVolumes, contents } = caches;
  await caches.synced();
  await releaseLeftoverVolumes(options, pods, log);
  const podNetworks = options.networks?.podNetworks;
  const instanceNetworks = options.networks && new InstanceNetworks({ client, networks: options.networks });
  await prepareDefaultNetwork(instanceNetworks, log, signal);

  const description = {
    name,
    host: await readHostFacts(),
    capabilities,
    address: hostIp,
    port: endpoint?.port,
    hostname: endpoint?.hostname,
    tunnelAddress: podNetworks?.setPeers && tunnelAddressOf(hostIp),
    storage: await volumes.storageSize?.(),
    taints: options.taints ?? [],
  };
  const registration = register({ client, nodes, description, clock, log, signal });
  const events = new EventRecorder({ writer: client, clock, log, component: 'virt-handler', instance: name, signal });
  const locks = new DomainLocks();
  const readings = new DeviceReadings({ hypervisor, clock });
  const agents = new AgentReader({ hypervisor, clock, log });
  const host = await openHostApi({
    dir: options.hostDir,
    hypervisor,
    readings,
    agents,
    turns: locks,
    capabilities,
    clock,
    log,
  });
  const shared = { client, pods, vmis, hypervisor, volumes, locks, clock, log, signal };
  const domainParts = {
    ...shared,
    guest: options.guest,
    node,
    networks: podNetworks,
    instanceNetworks,
    notes: new DomainNotes(),
    hotplugNotes: new HotplugNotes(),
  };
  const migrations = new Migrations({ ...domainParts, peers: options.peers, events });
  const ports = new GuestPortConnector({ hypervisor, agents, podNetworks, clock });
  const probes = new ProbeRunner({ hypervisor, ports, events, clock, log });
  const domains = startDomainController({
    ...domainParts,
    agents,
    probes,
    readings,
    migrations,
    ownPods: new OwnWrites<Pod>(),
    ownVmis: new OwnWrites<VirtualMachineInstance>(),
    events,
  });
  const stopWatchdogEvents = recordWatchdogEvents({
    hypervisor,
    vmiOf: (id) => vmis.byIndex(INSTANCES_BY_UID, id)[0],
    events,
  });
  const access = options.programAccess && new PodAccess({ ...options.programAccess, client, clock, signal });
  await access?.clear();
  const programs = new ProgramPods({ ...shared, runProgram: options.runProgram ?? noProgram, access, hostIp });
  const storageParts = { ...shared, node: name, persistentVolumes, contents, events };
  const storageControllers = [
    startVolumeController(storageParts),
    startFillController(storageParts),
    startSnapshotController(storageParts),
  ];
  const services = await startServices(options, log, signal);
  const tunnel = startTunnel(options, description.tunnelAddress, log, signal);
  const parts = [registration, agents, domains, programs, ...storageControllers, ...services, ...tunnel];
  const disks = createDiskAccess(shared);

  return {
    name,
    registered: registration.registered,
    domains: () => hypervisor.list(),
    async idle() {
      // Work of one part may create work for another.
      for (let round = 0; round < IDLE_ROUNDS; round++) for (const part of parts) await part.idle();
      await events.idle();
    },
    async stop() {
      stopping.abort();
      probes.stop();
      ports.stop();
      stopWatchdogEvents();
      await Promise.all([migrations.stop(), ...parts.map((part) => part.stop()), caches.stopped()]);
    },
    ...endpointAgent({ hypervisor, ports, vmis, locks, migrations }),
    ...(options.peers && { migrations }),
    ...(disks && { disks }),
    host,
    logs: (namespace, pod, container) => containerLog({ pods, programs, hypervisor }, { namespace, pod, container }),
  };
}

const IDLE_ROUNDS = 2;

/** Prepares the default network before the first guest needs it. A failure is only logged: each start tries it again. */
async function prepareDefaultNetwork(
  networks: InstanceNetworks | undefined,
  log: Log,
  signal: AbortSignal,
): Promise<void> {
  await networks?.prepareDefault(signal).catch((err: unknown) => {
    signal.throwIfAborted();
    log.error({ err }, 'Cannot prepare the default network; it will be tried again when a guest starts');
  });
}

/** Starts to route Services as soon as there is a default network. */
async function startServices(
  { name, client, services: tools, clock }: NodeAgentOptions,
  log: Log,
  signal: AbortSignal,
): Promise<readonly { idle(): Promise<void>; stop(): Promise<void> }[]> {
  if (tools === undefined) return [];
  const common = { reader: client, clock, log };
  const services = new Informer({ ...common, type: ROUTED_SERVICES });
  const slices = new Informer({ ...common, type: ROUTED_SLICES });
  const nodes = new Informer({ ...common, type: HOST_NODES });
  const networks = new Informer({ ...common, type: GUEST_NETWORKS });
  const running = [services, slices, nodes, networks].map((informer) => informer.start({ signal }));
  await Promise.all([services.waitForSync(), slices.waitForSync(), nodes.waitForSync()]);
  const routing = startServiceRouting({ ...tools, services, slices, nodes, nodeName: name, clock, log, signal });
  const stopFollowing = networks.onChange((key, { new: network }) => {
    if (key === DEFAULT_NETWORK) routing.setNetwork(network && tools.planNetwork(network));
  });
  const stop = async () => {
    stopFollowing();
    await routing.stop();
    await Promise.all(running);
  };
  return [{ idle: () => routing.idle(), stop }];
}

/** Connects the default network of this host with those of the other nodes' hosts. */
function startTunnel(
  { client, networks, clock }: NodeAgentOptions,
  local: string | undefined,
  log: Log,
  signal: AbortSignal,
): readonly { idle(): Promise<void>; stop(): Promise<void> }[] {
  const podNetworks = networks?.podNetworks;
  if (podNetworks?.setPeers === undefined || local === undefined) return [];
  const setPeers = podNetworks.setPeers.bind(podNetworks);
  return [followPeers({ reader: client, local, setPeers, clock, log, signal })];
}

/** Releases volumes of earlier guests, before new ones are prepared. A failure is only logged: the next start tries again. */
async function releaseLeftoverVolumes(
  { hypervisor, volumes }: NodeAgentOptions,
  pods: Informer<Pod>,
  log: Log,
): Promise<void> {
  const wanted = new Set(pods.list().flatMap(instanceUids));
  try {
    await volumes.releaseUnwanted((id) => wanted.has(id) || hypervisor.get(id) !== undefined);
  } catch (err) {
    log.error({ err }, 'Cannot release volumes of earlier guests; it will be tried at the next start of the agent');
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
    // Without `contents`, because a cluster may not have the snapshot CRDs. The snapshot controller waits for them itself.
    synced: () =>
      Promise.all([pods.waitForSync(), vmis.waitForSync(), nodes.waitForSync(), persistentVolumes.waitForSync()]),
    stopped: () => Promise.all(running),
  };
}

/** Serves requests of users. Those that change a guest hold its lock. */
function endpointAgent({
  hypervisor,
  ports,
  vmis,
  locks,
  migrations,
}: {
  readonly hypervisor: Hypervisor;
  readonly ports: GuestPortConnector;
  readonly vmis: Informer<VirtualMachineInstance>;
  readonly locks: DomainLocks;
  readonly migrations: Migrations;
}): Omit<EndpointAgent, 'logs' | 'host' | 'disks' | 'migrations'> {
  const runExclusively = (id: string, work: (id: string) => Promise<void>) =>
    locks.run(id, async () => {
      // A migration may have started after the request was checked.
      const isAway = migrations.isSending(id) || isDomainMoving(hypervisor.get(id));
      if (isAway) throw new HypervisorError('VMI is migrating');
      await work(id);
    });
  /** Throws NoDisplayError for guests without a display, which users see as another message. */
  const withDisplay = async <T>(id: string, use: () => Promise<T>): Promise<T> => {
    const inspected = hypervisor.inspect(id);
    if (inspected !== undefined && !hasDisplay(inspected.definition)) throw new NoDisplayError();
    return await use();
  };
  return {
    find(namespace, vmiName) {
      const name = `${namespace}/${vmiName}`;
      const known = hypervisor.get(vmis.get(name)?.metadata.uid ?? '');
      if (known !== undefined) return known;
      // An ended guest may still exist beside a new one of the same name.
      const found = hypervisor.list().filter((domain) => domain.name === name && domain.origin === undefined);
      return found.find(({ current }) => current.state !== 'ended') ?? found.at(-1);
    },
    pause: (id) => runExclusively(id, () => hypervisor.pause(id)),
    resume: (id) => runExclusively(id, () => hypervisor.resume(id)),
    softReboot: (id) => runExclusively(id, () => hypervisor.softReboot(id)),
    reset: (id) => runExclusively(id, () => hypervisor.reset(id)),
    freeze: (id, seconds) =>
      runExclusively(id, () => hypervisor.freeze(id, { timeoutMs: seconds * 1000, why: 'asked' })),
    unfreeze: (id) => runExclusively(id, () => hypervisor.thaw(id)),
    readGuest: (id, what) => readGuest(hypervisor, id, what),
    openConsole: (id) => hypervisor.openConsole(id),
    openDisplay: (id) => withDisplay(id, () => hypervisor.openDisplay(id)),
    screenshot: (id, options) => withDisplay(id, () => hypervisor.screenshot(id, options)),
    openPort: (id, port) => ports.openPort(id, port),
  };
}

const noProgram: RunProgram = () => ({
  onOutput: (listener) => listener(Buffer.from('Cannot run a program: this node agent does not run programs.\n')),
  exited: Promise.resolve(127),
  kill() {},
});
