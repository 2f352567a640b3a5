/**
 * Simulated nodes of a plane in this process: real agents with the permissions of their nodes, on hosts that outlive
 * them. A shared list records every start of a guest, and whether another guest of the same VM was running.
 */
import { createInProcessTransport } from '#client/in-process.ts';
import { createClient } from '#client/rest-client.ts';
import type { FakeClock } from '#lib/testing/fake-clock.ts';
import type { ApiHandler } from '#engine/request/request.ts';
import { internalError, notFound } from '#kube/api-error.ts';
import { silentLog } from '#lib/log.ts';
import { startNodeAgent, type RunningAgent } from '#node/agent/node-agent.ts';
import type { DomainDefinition } from '#node/hardware/domain-definition.ts';
import type { GuestKernel } from '#node/guests/node-facts.ts';
import { parseEndpointPath } from '#node/endpoint/route.ts';
import { serveScreenshot } from '#node/endpoint/serve-display.ts';
import { serveHost } from '#node/endpoint/serve-host.ts';
import { serveGuest, serveVerb } from '#node/endpoint/serve-verb.ts';
import type { FakeGuest } from '#node/hypervisor/fake/fake-guest.ts';
import { FakeHost } from '#node/hypervisor/fake/fake-host.ts';
import { createFakeHypervisor, type FakeHypervisor } from '#node/hypervisor/fake/fake-hypervisor.ts';
import type { FakeStates } from '#node/hypervisor/fake/fake-states.ts';
import { connectGuests } from '#node/network/connect-guests.ts';
import { createFakeNetworks, FakeNetworkHost } from '#node/network/fake/fake-networks.ts';
import type { HypervisorError } from '#node/hypervisor/hypervisor.ts';
import type { NodeConnections } from '#subresources/node-connections.ts';
import { Connections } from '#test/support/connections.ts';
import type { PeerStreams } from '#test/support/peer-streams.ts';
import { SimulatedDisks, type SimulatedStorage } from '#test/support/simulated-disks.ts';

/** One start of a guest. */
export interface Start {
  readonly node: string;
  readonly id: string;
  /** `<namespace>/<name>` of its instance. */
  readonly name: string;
  /** The part of the definition that the guest can notice. */
  readonly machine: Omit<DomainDefinition, 'id' | 'network'>;
  /** Nodes on which a guest of the same name was already running. */
  readonly alreadyRunningOn: readonly string[];
}

export interface SimulatedNodeOptions {
  readonly name: string;
  readonly clock: FakeClock;
  readonly handler: ApiHandler;
  readonly guest: GuestKernel | undefined;
  /** The starts on all nodes. */
  readonly starts: Start[];
  readonly allNodes: () => readonly SimulatedNode[];
  /** Guests for which two nodes answered on the network at the same time. */
  readonly doubleAnswers: string[];
  /** The storage that every node reaches. */
  readonly shared: SimulatedStorage;
  /** The streams between all nodes. */
  readonly streams: PeerStreams;
  /** Persistent state, which outlives guests, on any volume. */
  readonly states: FakeStates;
}

export class SimulatedNode {
  readonly name: string;
  readonly host: FakeHost;
  readonly networkHost = new FakeNetworkHost();
  readonly disks: SimulatedDisks;
  /** Errors with which starts of a guest fail, by `<namespace>/<name>`. */
  readonly startErrors = new Map<string, HypervisorError>();
  /** Called when a write of the agent has been accepted, before the agent gets the response. */
  onWrite: ((what: string) => void) | undefined;
  /** The files of the built-in guest for the next agent. */
  guest: GuestKernel | undefined;
  readonly #options: SimulatedNodeOptions;
  #agent: RunningAgent | undefined;
  #hypervisor: FakeHypervisor | undefined;
  #connections = new Connections();

  constructor(options: SimulatedNodeOptions) {
    this.#options = options;
    this.name = options.name;
    this.guest = options.guest;
    this.disks = new SimulatedDisks(options.shared, options.name);
    this.host = new RecordingHost((definition) => this.#recordStart(definition), options.states);
    this.host.disks = this.disks;
    this.host.onCopy = (copies) => this.disks.copyDisks(copies);
    this.networkHost.onChange = (id) => this.#checkNetworks(id);
  }

  /** The names of the PersistentVolumes whose data this node reaches. */
  get volumeNames(): ReadonlySet<string> {
    const { own, shared } = this.disks;
    return new Set([...own.contents.keys(), ...shared.contents.keys()]);
  }

  /** Returns the text on the disk of a PersistentVolume, or undefined if there is none. */
  read(volume: string): string | undefined {
    return this.disks.read(volume);
  }

  /** Writes to the disk of a PersistentVolume, as a guest would. */
  write(volume: string, text: string): void {
    this.disks.write(volume, text);
  }

  /** The agent, or undefined while it is stopped. */
  get agent(): RunningAgent | undefined {
    return this.#agent;
  }

  async start(): Promise<void> {
    const { name, clock } = this.#options;
    const handler: ApiHandler = async (request) => {
      const response = await this.#connections.wrap(this.#options.handler)(request);
      if (request.method !== 'GET') this.onWrite?.(`${request.method} ${request.path}`);
      return response;
    };
    const user = { name: `system:node:${name}`, groups: ['system:nodes', 'system:authenticated'] };
    const networks = createFakeNetworks({ host: this.networkHost });
    const options = { networks, userOf: () => undefined, log: silentLog };
    const hypervisor = connectGuests(createFakeHypervisor({ clock, host: this.host }), options);
    this.#hypervisor = hypervisor;
    this.#agent = await startNodeAgent({
      name,
      client: createClient(createInProcessTransport({ handler, user, userAgent: 'agent' })),
      hypervisor,
      volumes: this.disks.volumes(),
      networks: { podNetworks: networks, hostConfig: async () => undefined, isSimulated: true },
      guest: this.guest,
      endpoint: { address: '127.0.0.1', port: 10_250 },
      sandboxed: false,
      peers: this.#options.streams.peersOf(name),
      clock,
      log: silentLog,
    });
  }

  /** Makes the next incoming migration fail with the error. */
  failNextIncoming(error: HypervisorError): void {
    this.#hypervisor?.failNextReceive(error);
  }

  /** Stops the agent; its guests run on. */
  async stop(): Promise<void> {
    const agent = this.#agent;
    this.#agent = undefined;
    this.#options.streams.breakStreams(this.name);
    await agent?.stop();
  }

  /**
   * Crashes the agent, like kill -9: from now on it can do nothing more and reaches nothing; whatever it is doing
   * fails. `stop` removes it afterwards.
   */
  crashAgent(): void {
    this.#connections.breakAll();
    this.#options.streams.breakStreams(this.name);
    this.host.acquire({ onChange() {}, onLost() {} });
    this.networkHost.acquire({});
  }

  /** Cuts the agent off from everything until `reconnect`. It keeps running. */
  isolate(): void {
    this.#connections.breakAll();
    this.#options.streams.breakStreams(this.name);
  }

  get isIsolated(): boolean {
    return this.#connections.isBroken;
  }

  reconnect(): void {
    this.#connections = new Connections();
  }

  /** Returns the guests that have not ended. */
  livingGuests(name?: string): FakeGuest[] {
    return [...this.host.guests()].filter(
      ({ record }) => record.current.state !== 'ended' && (name === undefined || record.name === name),
    );
  }

  /** Two nodes must never answer for one guest. */
  #checkNetworks(id: string): void {
    const active = this.#options
      .allNodes()
      .filter(({ networkHost }) => networkHost.states.get(id)?.isSilent === false)
      .map(({ name }) => name);
    if (active.length > 1) this.#options.doubleAnswers.push(`${id} on ${active.join(' and ')}`);
  }

  #recordStart(definition: DomainDefinition): void {
    const { starts, allNodes } = this.#options;
    const { id, network: _, ...machine } = definition;
    const { name } = machine;
    const refusal = this.startErrors.get(name);
    if (refusal !== undefined) throw refusal;
    const beside = allNodes().flatMap((node) => (node.livingGuests(name).length > 0 ? [node.name] : []));
    starts.push({ node: this.name, id, name, machine, alreadyRunningOn: beside });
  }
}

class RecordingHost extends FakeHost {
  readonly #onStart: (definition: DomainDefinition) => void;

  constructor(begins: (definition: DomainDefinition) => void, states: FakeStates) {
    super(undefined, { states });
    this.#onStart = begins;
  }

  override addGuest(definition: DomainDefinition, options: { startedAtMs: number; paused: boolean }): void {
    this.#onStart(definition);
    super.addGuest(definition, options);
  }
}

/** Calls the agents as functions, by the same paths as over HTTPS. Does not support consoles. */
export function directConnections(nodes: () => readonly SimulatedNode[]): NodeConnections {
  const agentOf = (node: string): RunningAgent => {
    const target = nodes().find(({ name }) => name === node);
    const agent = target?.isIsolated === true ? undefined : target?.agent;
    if (agent === undefined) throw internalError(`Cannot reach the agent of node "${node}": no connection in time`);
    return agent;
  };
  return {
    async put({ node, path }) {
      const agent = agentOf(node);
      const { pathname, searchParams } = new URL(path, 'https://node.invalid');
      const route = parseEndpointPath(pathname);
      if (route.kind !== 'verb') throw notFound({ group: '', plural: 'paths' }, path);
      await serveVerb(agent, route, searchParams);
    },
    async get({ node, path }) {
      const agent = agentOf(node);
      const { pathname, searchParams } = new URL(path, 'https://node.invalid');
      const route = parseEndpointPath(pathname);
      if (route.kind === 'guest') return Buffer.from(JSON.stringify(await serveGuest(agent, route)));
      if (route.kind === 'screenshot') return await serveScreenshot(agent, route, searchParams);
      throw notFound({ group: '', plural: 'paths' }, path);
    },
    async post({ node, path, body, signal }) {
      const agent = agentOf(node);
      const route = parseEndpointPath(path);
      if (route.kind !== 'host') throw notFound({ group: '', plural: 'paths' }, path);
      return Buffer.from(JSON.stringify(await serveHost(agent, route, body, { signal })));
    },
    upgrade: () => Promise.reject(internalError('simulated nodes have no consoles')),
    close() {},
  };
}
