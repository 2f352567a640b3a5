/**
 * The networks of guests on Linux: a network namespace for each, which CNI plugins connect, with a tap, rules and a DHCP
 * server in it. What the host's namespace needs for the default network is HostSide's; records, scripts and rules have their
 * own modules. This one has the order of the steps.
 *
 *   namespace → tap and rules → plugins → permission on the host → DHCP → port into the bridge, announcement
 */
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import type { GuestNetwork } from '#api/network/guest-network.ts';
import type { Stored } from '#kube/meta.ts';
import type { Clock } from '#lib/clock.ts';
import { replaceFileAtomically } from '#lib/files/replace-file-atomically.ts';
import { errorMessage } from '#lib/error-message.ts';
import { formatIpAddress } from '#lib/ip-address.ts';
import type { Log } from '#lib/log.ts';
import { CniRunner } from '#node/network/linux/cni/cni-runner.ts';
import { DhcpServers } from '#node/network/linux/dhcp/dhcp-server.ts';
import { dnsmasqConfig } from '#node/network/linux/dhcp/dnsmasq-config.ts';
import type { HostSide } from '#node/network/linux/host-port.ts';
import { InterfaceConnector, type ConnectorStep } from '#node/network/linux/interface-connector.ts';
import type { InterfacePlan } from '#node/network/linux/interface-plan.ts';
import { planNetwork, type NetworkPlan } from '#node/network/linux/network-plan.ts';
import { PodNamespaces } from '#node/network/linux/pod-namespace.ts';
import { loadFacts, PodRecords, type ConnectedInterface, type PodRecord } from '#node/network/linux/pod-record.ts';
import { launcherIn } from '#node/network/linux/run-network-program.ts';
import {
  PodNetworkError,
  type NetworkRequest,
  type PodNetwork,
  type PodNetworks,
  type TapRequest,
} from '#node/network/pod-networks.ts';

interface LinuxPodNetworksOptions {
  /** The directory of the node; everything is in its subdirectory `network`. */
  readonly nodeDir: string;
  readonly clock: Clock;
  readonly log: Log;
  /** Creates the host's side of the default network. */
  readonly hostSide: (plan: NetworkPlan) => HostSide;
  readonly pluginDirs?: readonly string[];
  /** The path of the network namespace of the host; that of this process if absent. */
  readonly namespace?: string;
  /** Called after each step, for tests that end in between. */
  readonly afterStep?: (step: AttachStep) => void | Promise<void>;
}

type AttachStep = ConnectorStep | 'recorded' | 'namespace' | 'dhcp' | 'activated' | 'killed' | 'disconnected';

/** In the directory of the node: the default network, as a GuestNetwork, for the removal of everything. */
export const DEFAULT_NETWORK_FILE = 'guest-network.json';
const PLUGIN_DIRS = ['/opt/cni/bin', '/usr/lib/cni'];
const REPAIR_MS = 10_000;

export class LinuxPodNetworks implements PodNetworks {
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #hostSide: (plan: NetworkPlan) => HostSide;
  readonly #afterStep: (step: AttachStep) => void | Promise<void>;
  readonly #nodeDir: string;
  readonly #directory: string;
  readonly #namespaces: PodNamespaces;
  readonly #recordFiles: PodRecords;
  readonly #cni: CniRunner;
  readonly #dhcp: DhcpServers;
  readonly #connector: InterfaceConnector;
  readonly #records = new Map<string, PodRecord>();
  /** Guests of which only remains were found. */
  readonly #leftovers = new Set<string>();
  /** The last call for each guest, and the repair, take turns. */
  readonly #turns = new Map<string, Promise<unknown>>();
  #host: HostSide | undefined;
  /** The uid and generation of the default network, and when it is ready on this host. */
  #current: { readonly version: string | undefined; readonly isSet: Promise<void> } | undefined;
  #hostProblem: unknown;
  #peers: { readonly local: string; readonly peers: readonly string[] } | undefined;
  /** The host's side that knows the peers. It keeps the tunnel from then on. */
  #connectedHost: HostSide | undefined;
  #cancelRepair: (() => void) | undefined;
  #repair: Promise<void> = Promise.resolve();
  #isClosed = false;

  constructor(options: LinuxPodNetworksOptions) {
    const { nodeDir, clock, log, hostSide, pluginDirs = PLUGIN_DIRS, namespace, afterStep } = options;
    const launcher = launcherIn(namespace);
    this.#clock = clock;
    this.#log = log;
    this.#hostSide = hostSide;
    this.#afterStep = afterStep ?? (() => undefined);
    this.#nodeDir = nodeDir;
    this.#directory = join(nodeDir, 'network');
    this.#namespaces = new PodNamespaces(nodeDir);
    this.#recordFiles = new PodRecords(this.#directory);
    this.#cni = new CniRunner({ pluginDirs, launcher, cacheDir: join(this.#directory, 'cni') });
    this.#dhcp = new DhcpServers(join(this.#directory, 'dhcp'));
    this.#connector = new InterfaceConnector({
      cni: this.#cni,
      namespaces: this.#namespaces,
      launcher,
      host: () => this.#usableHost(),
      knownHost: () => this.#host,
      afterStep: this.#afterStep,
    });
  }

  async adopt(): Promise<void> {
    const { records, damaged } = await this.#recordFiles.readAll();
    await mkdir(join(this.#directory, 'cni'), { recursive: true, mode: 0o700 });
    await this.#dhcp.prepare();
    for (const id of [...damaged, ...(await this.#namespaces.list())]) this.#leftovers.add(id);
    for (const [id, record] of records) {
      this.#leftovers.delete(id);
      // After a restart of the host there is no namespace: the next attach makes it again.
      const isComplete = record.state !== 'attached' || (await this.#namespaces.exists(id));
      this.#records.set(id, isComplete ? record : { ...record, state: 'attaching' });
    }
    for (const [id, { state }] of this.#records) {
      if (state === 'attached')
        await this.#takeTurn(id, () => this.#checkAdopted(id)).catch((error: unknown) => this.#warn(id, error));
    }
    this.#scheduleRepair();
  }

  async setDefaultNetwork(network: Stored<GuestNetwork> | undefined): Promise<void> {
    // The repair keeps it up to date, and every start of a guest comes here.
    const version = network && `${network.metadata.uid} ${network.metadata.generation}`;
    if (this.#current === undefined || version !== this.#current.version || this.#hostProblem !== undefined) {
      this.#current = { version, isSet: this.#setNetwork(network) };
    }
    await this.#current.isSet;
  }

  async #setNetwork(network: Stored<GuestNetwork> | undefined): Promise<void> {
    await this.#repair;
    if (network !== undefined) {
      const { metadata, spec } = network;
      await replaceFileAtomically(join(this.#nodeDir, DEFAULT_NETWORK_FILE), JSON.stringify({ metadata, spec }));
    }
    this.#host = network && this.#hostSide(planNetwork(network));
    this.#hostProblem = undefined;
    try {
      await this.#ensureHost();
    } finally {
      // The host's side does not know the ports of an earlier process. They may work although not all can be repaired.
      if (await this.#allowAll()) await this.#repairPorts();
    }
  }

  async setPeers(local: string, peers: readonly string[]): Promise<void> {
    this.#peers = { local, peers };
    this.#connectedHost = undefined;
    await this.#connectHost();
  }

  attach(
    request: NetworkRequest,
    { isSilent, signal }: { readonly isSilent: boolean; readonly signal?: AbortSignal | undefined },
  ): Promise<PodNetwork> {
    return this.#takeTurn(request.id, () => this.#attach(request, isSilent, signal));
  }

  plug(id: string, tap: TapRequest): Promise<void> {
    return this.#takeTurn(id, async () => {
      const record = this.#attached(id);
      const { podInterface } = tap.attachment;
      const isConnected = record.interfaces.some((entry) => entry.podInterface === podInterface);
      const known = record.request.interfaces.find(({ attachment }) => attachment.podInterface === podInterface);
      if (isConnected && isDeepStrictEqual(known, tap)) return;
      const others = withoutInterface(record, podInterface);
      if (known !== undefined) await this.#connector.disconnect(id, known);
      const request = { ...others.request, interfaces: [...others.request.interfaces, tap] };
      await this.#write({ ...others, request });
      try {
        const connected = await this.#connector.connect(request, tap);
        await this.#write({ ...others, request, interfaces: [...others.interfaces, connected] });
        await this.#serveAgain(id);
        if (!record.isSilent) await this.#connector.activate(id, tap, connected);
      } catch (error) {
        await this.#unplug(id, podInterface);
        throw error;
      }
    });
  }

  unplug(id: string, podInterface: string): Promise<void> {
    return this.#takeTurn(id, () => this.#unplug(id, podInterface));
  }

  activate(id: string): Promise<void> {
    return this.#takeTurn(id, () => this.#setSilent(id, false));
  }

  silence(id: string): Promise<void> {
    return this.#takeTurn(id, () => this.#setSilent(id, true));
  }

  detach(id: string): Promise<void> {
    return this.#takeTurn(id, () => this.#detach(id));
  }

  get(id: string): PodNetwork | undefined {
    const record = this.#records.get(id);
    if (record?.state !== 'attached') return undefined;
    return {
      namespace: this.#namespaces.path(id),
      interfaces: record.interfaces.map(({ podInterface, facts }) => ({
        podInterface,
        addresses: loadFacts(facts).addresses.map(({ address }) => formatIpAddress(address)),
        mtu: facts.mtu,
      })),
    };
  }

  list(): readonly string[] {
    return [...new Set([...this.#records.keys(), ...this.#leftovers])];
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#cancelRepair?.();
    await this.#repair;
    await Promise.allSettled(this.#turns.values());
  }

  async #attach(request: NetworkRequest, isSilent: boolean, signal: AbortSignal | undefined): Promise<PodNetwork> {
    const { id } = request;
    const found = this.#records.get(id);
    if (found?.state === 'attached' && isDeepStrictEqual(found.request, plain(request))) {
      if (found.isSilent !== isSilent) await this.#setSilent(id, isSilent);
      return this.#network(id);
    }
    if (found !== undefined || this.#leftovers.has(id)) await this.#detach(id);
    checkRequest(request);
    let serving: Promise<unknown> = Promise.resolve();
    try {
      await this.#write({ version: 1, state: 'attaching', isSilent, request: plain(request), interfaces: [] });
      await this.#afterStep('recorded');
      await this.#namespaces.create(id, signal);
      await this.#afterStep('namespace');
      const plans: InterfacePlan[] = [];
      const onReady = (plan: InterfacePlan) => {
        plans.push(plan);
        if (plans.length < request.interfaces.length) return;
        serving = this.#serve(request, plans);
        serving.catch(() => undefined); // Awaited below.
      };
      for (const tap of request.interfaces) {
        const connected = await this.#connector.connect(request, tap, { signal, onReady });
        const record = this.#recordOf(id);
        await this.#write({ ...record, interfaces: [...record.interfaces, connected] });
      }
      await serving;
      await this.#afterStep('dhcp');
      if (!isSilent) await this.#applySilence(id, false, { isNew: true });
      await this.#afterStep('activated');
      signal?.throwIfAborted();
      await this.#write({ ...this.#recordOf(id), state: 'attached' });
      return this.#network(id);
    } catch (error) {
      await serving.catch(() => undefined);
      await this.#detach(id).catch((problem: unknown) => this.#warn(id, problem));
      throw toPodNetworkError(
        error,
        `Cannot connect the guest of pod ${request.network.pod.namespace}/${request.network.pod.name}`,
      );
    }
  }

  async #unplug(id: string, podInterface: string): Promise<void> {
    const record = this.#attached(id);
    const tap = record.request.interfaces.find(({ attachment }) => attachment.podInterface === podInterface);
    if (tap === undefined) return;
    await this.#connector.disconnect(id, tap);
    await this.#write(withoutInterface(record, podInterface));
    await this.#serveAgain(id);
  }

  async #detach(id: string): Promise<void> {
    const record = this.#records.get(id);
    if (record === undefined && !this.#leftovers.has(id)) return;
    if (record !== undefined && record.state !== 'detaching') await this.#write({ ...record, state: 'detaching' });
    if (await this.#namespaces.exists(id)) await this.#namespaces.kill(id);
    await this.#afterStep('killed');
    const problems: unknown[] = [];
    // In reverse order; the others too if one fails.
    for (const podInterface of (await this.#cni.interfaces(id)).sort().reverse()) {
      await this.#cni.delete(id, podInterface).catch((error: unknown) => problems.push(error));
    }
    for (const tap of record?.request.interfaces ?? []) {
      await this.#connector.forget(id, tap).catch((error: unknown) => problems.push(error));
    }
    await this.#afterStep('disconnected');
    await this.#namespaces.delete(id).catch((error: unknown) => problems.push(error));
    await this.#dhcp.remove(id);
    if (problems.length > 0) {
      // The record stays, so that the repair tries again.
      const reasons = problems.map(errorMessage).join('; ');
      throw new PodNetworkError(`Cannot remove the network of guest ${id}: ${reasons}; it is tried again`, {
        cause: problems[0],
      });
    }
    await this.#recordFiles.remove(id);
    this.#records.delete(id);
    this.#leftovers.delete(id);
  }

  /** Writes first and acts then, so that after a crash the record decides. */
  async #setSilent(id: string, isSilent: boolean): Promise<void> {
    const record = this.#attached(id);
    if (record.isSilent !== isSilent) await this.#write({ ...record, isSilent });
    await this.#applySilence(id, isSilent);
  }

  async #applySilence(id: string, isSilent: boolean, options: { readonly isNew?: boolean } = {}): Promise<void> {
    const record = this.#recordOf(id);
    // The others too if one fails.
    const problems: unknown[] = [];
    for (const tap of record.request.interfaces) {
      const connection = connectionOf(record, tap.attachment.podInterface);
      if (connection === undefined) continue;
      const change = isSilent
        ? this.#connector.silence(id, connection)
        : this.#connector.activate(id, tap, connection, options);
      await change.catch((error: unknown) => problems.push(error));
    }
    if (problems.length > 0) throw problems[0];
  }

  /** Starts the DHCP server for the interfaces of the record, after one has come or gone. */
  async #serveAgain(id: string): Promise<void> {
    const record = this.#recordOf(id);
    const plans = record.request.interfaces.flatMap((tap) => {
      const connection = connectionOf(record, tap.attachment.podInterface);
      return connection === undefined ? [] : [this.#connector.planOf(tap, connection)];
    });
    await this.#serve(record.request, plans);
  }

  async #serve(
    { id, network: { hostname, searchDomains } }: NetworkRequest,
    plans: readonly InterfacePlan[],
  ): Promise<void> {
    const config = dnsmasqConfig(plans, { pidFile: this.#dhcp.pidFile(id), hostname, searchDomains });
    await this.#dhcp.replace(id, this.#namespaces.path(id), config);
  }

  async #checkAdopted(id: string): Promise<void> {
    if (await this.#dhcp.restart(id, this.#namespaces.path(id))) {
      this.#log.warn({ domain: id }, 'The DHCP server of a guest had ended; started it again');
    }
    const record = this.#recordOf(id);
    for (const tap of record.request.interfaces) {
      const { network, podInterface } = tap.attachment;
      const connection = connectionOf(record, podInterface);
      if (network.type === 'default' || connection === undefined) continue;
      // The agent may have ended between the record and its effect; setDefaultNetwork repairs ports of our own network.
      if (record.isSilent) await this.#connector.silence(id, connection);
      else await this.#connector.activate(id, tap, connection);
      await this.#cni.check(id, podInterface);
    }
  }

  /** Permits all ports again. Returns false if that failed for some. */
  async #allowAll(): Promise<boolean> {
    let isComplete = true;
    for (const [id] of this.#records) {
      await this.#takeTurn(id, () => this.#allowAgain(id)).catch((error: unknown) => {
        isComplete = false;
        this.#warn(id, error);
      });
    }
    return isComplete;
  }

  async #allowAgain(id: string): Promise<void> {
    const record = this.#records.get(id);
    if (record?.state !== 'attached') return;
    for (const tap of record.request.interfaces) {
      const connection = connectionOf(record, tap.attachment.podInterface);
      if (connection !== undefined) await this.#connector.allow(tap, connection);
    }
  }

  async #ensureHost(): Promise<void> {
    if (this.#host === undefined) return;
    try {
      await this.#host.ensure();
      const wasBroken = this.#hostProblem !== undefined;
      this.#hostProblem = undefined;
      if (wasBroken) await this.#allowAll();
    } catch (error) {
      this.#hostProblem = error;
      throw error;
    }
    // Without the tunnel, the guests of this host still have their network.
    await this.#connectHost().catch((error: unknown) =>
      this.#log.warn({ reason: errorMessage(error) }, 'Cannot connect the default network with other hosts; retrying'),
    );
  }

  async #connectHost(): Promise<void> {
    const host = this.#host;
    if (host === undefined || this.#hostProblem !== undefined) return;
    if (this.#peers === undefined || this.#connectedHost === host) return;
    const { local, peers } = this.#peers;
    await host.setPeers(local, peers);
    this.#connectedHost = host;
  }

  #scheduleRepair(): void {
    if (this.#isClosed) return;
    this.#cancelRepair = this.#clock.after(REPAIR_MS, () => {
      this.#repair = this.#repairAll().finally(() => this.#scheduleRepair());
    });
  }

  /** Restores what somebody else has removed, and repeats what could not be removed. */
  async #repairAll(): Promise<void> {
    await this.#ensureHost().catch((error: unknown) =>
      this.#log.warn({ reason: errorMessage(error) }, 'Cannot repair the default network; retrying'),
    );
    if (this.#hostProblem === undefined) {
      await this.#repairPorts().catch((error: unknown) =>
        this.#log.warn({ reason: errorMessage(error) }, 'Cannot repair the ports of guests; retrying'),
      );
    }
    for (const [id, { state }] of this.#records) {
      if (this.#isClosed) return;
      // Nobody waits for a plugin that hangs, except for the next call for its guest.
      if (state === 'detaching' && !this.#turns.has(id)) {
        void this.#takeTurn(id, () => this.#repairGuest(id)).catch((error: unknown) => this.#warn(id, error));
      } else if (state === 'attached') {
        await this.#takeTurn(id, () => this.#repairGuest(id)).catch((error: unknown) => this.#warn(id, error));
      }
    }
  }

  async #repairGuest(id: string): Promise<void> {
    const state = this.#records.get(id)?.state;
    if (state === 'detaching') return this.#detach(id);
    if (state !== 'attached') return;
    if (await this.#dhcp.restart(id, this.#namespaces.path(id))) {
      this.#log.warn({ domain: id }, 'The DHCP server of a guest had ended; started it again');
    }
  }

  /** Puts ports that are in the wrong bridge, or in none, where their records demand it. */
  async #repairPorts(): Promise<void> {
    if (this.#host === undefined) return;
    const wrong = await this.#connector.misplacedPorts(
      this.#host.plan,
      [...this.#records.values()].filter(({ state }) => state === 'attached'),
    );
    for (const id of wrong) {
      await this.#takeTurn(id, async () => {
        const record = this.#records.get(id);
        if (record?.state !== 'attached') return;
        await this.#applySilence(id, record.isSilent);
        this.#log.warn({ domain: id }, 'A port of a guest was in the wrong bridge; moved it');
      }).catch((error: unknown) => this.#warn(id, error));
    }
  }

  #usableHost(): HostSide {
    if (this.#host === undefined) throw new PodNetworkError('There is no default network on this node yet');
    if (this.#hostProblem !== undefined) {
      throw new PodNetworkError(`The default network does not work on this node: ${errorMessage(this.#hostProblem)}`, {
        cause: this.#hostProblem,
      });
    }
    return this.#host;
  }

  #takeTurn<T>(id: string, work: () => Promise<T>): Promise<T> {
    const turn = (this.#turns.get(id) ?? Promise.resolve()).then(work, work);
    const settled = turn.then(
      () => undefined,
      () => undefined,
    );
    this.#turns.set(id, settled);
    void settled.finally(() => {
      if (this.#turns.get(id) === settled) this.#turns.delete(id);
    });
    return turn;
  }

  async #write(record: PodRecord): Promise<void> {
    await this.#recordFiles.write(record);
    this.#records.set(record.request.id, record);
  }

  #recordOf(id: string): PodRecord {
    const record = this.#records.get(id);
    if (record === undefined) throw new PodNetworkError(`Guest ${id} has no network on this node`);
    return record;
  }

  #attached(id: string): PodRecord {
    const record = this.#recordOf(id);
    if (record.state === 'attached') return record;
    throw new PodNetworkError(`The network of guest ${id} is not complete: ${record.state}`);
  }

  #network(id: string): PodNetwork {
    const network = this.get(id);
    if (network === undefined) throw new PodNetworkError(`Guest ${id} has no network on this node`);
    return network;
  }

  #warn(id: string, error: unknown): void {
    this.#log.warn({ domain: id, reason: errorMessage(error) }, 'Cannot repair the network of a guest; retrying');
  }
}

function connectionOf({ interfaces }: PodRecord, podInterface: string): ConnectedInterface | undefined {
  return interfaces.find((entry) => entry.podInterface === podInterface);
}

function withoutInterface(record: PodRecord, podInterface: string): PodRecord {
  const { request, interfaces } = record;
  const others = request.interfaces.filter(({ attachment }) => attachment.podInterface !== podInterface);
  return {
    ...record,
    request: { ...request, interfaces: others },
    interfaces: interfaces.filter((entry) => entry.podInterface !== podInterface),
  };
}

/** Returns the request as it is after reading it from its record, so that both can be compared. */
function plain(request: NetworkRequest): NetworkRequest {
  return JSON.parse(JSON.stringify(request)) as NetworkRequest;
}

function checkRequest({ interfaces }: NetworkRequest): void {
  const refuse = (problem: string) => new PodNetworkError(`Cannot connect a guest: ${problem}`, { permanent: true });
  const names = interfaces.flatMap(({ tap, attachment }) => [tap, attachment.podInterface]);
  if (new Set(names).size !== names.length) throw refuse(`names are used twice: ${names.join(', ')}`);
  // Two would need two routing tables; KubeVirt has it for the pod network only.
  const translated = interfaces.filter(({ attachment }) => attachment.binding === 'masquerade');
  if (translated.length > 1) throw refuse('only one interface can have the binding masquerade');
}

function toPodNetworkError(error: unknown, what: string): Error {
  if (error instanceof Error && error.name === 'AbortError') return error;
  const permanent = (error as { permanent?: unknown }).permanent === true;
  return new PodNetworkError(`${what}: ${errorMessage(error)}`, { cause: error, permanent });
}
