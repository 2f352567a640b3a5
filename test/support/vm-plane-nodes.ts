/**
 * Simulated nodes of a plane in this process: real agents under the rights of their nodes, on hosts that outlive them.
 * A ledger sees every guest that is started anywhere, and whether another of the same VM ran at that time.
 */
import { createInProcessTransport } from '#client/in-process.ts';
import { createClient } from '#client/rest-client.ts';
import type { FakeClock } from '#client/testing/fake-clock.ts';
import type { ApiHandler } from '#engine/request.ts';
import { internalError, notFound } from '#kube/api-error.ts';
import { silentLog } from '#lib/log.ts';
import { startNodeAgent, type RunningAgent } from '#node/agent/node-agent.ts';
import type { DomainDefinition } from '#node/definition/domain-definition.ts';
import type { GuestKernel } from '#node/domains/start-domain.ts';
import { parseEndpointPath } from '#node/endpoint/route.ts';
import { serveScreenshot } from '#node/endpoint/serve-display.ts';
import { serveHost } from '#node/endpoint/serve-host.ts';
import { serveGuest, serveVerb } from '#node/endpoint/serve-verb.ts';
import type { FakeGuest } from '#node/hypervisor/fake/fake-guest.ts';
import { FakeHost } from '#node/hypervisor/fake/fake-host.ts';
import { createFakeHypervisor, type FakeHypervisor } from '#node/hypervisor/fake/fake-hypervisor.ts';
import type { FakeStates } from '#node/hypervisor/fake/fake-states.ts';
import type { HypervisorError } from '#node/hypervisor/hypervisor.ts';
import type { NodeConnections } from '#subresources/node-connections.ts';
import { Connections } from '#test/support/connections.ts';
import type { PeerStreams } from '#test/support/peer-streams.ts';
import { SimulatedDisks, type SimulatedStorage } from '#test/support/simulated-disks.ts';

/** Every start of a guest, in order. */
export interface Start {
  readonly node: string;
  readonly id: string;
  /** `<namespace>/<name>` of its instance. */
  readonly name: string;
  /** What the guest can notice of it. */
  readonly machine: Omit<DomainDefinition, 'id'>;
  /** Nodes on which a guest of the same name ran already. */
  readonly beside: readonly string[];
}

export interface SimulatedNodeOptions {
  readonly name: string;
  readonly clock: FakeClock;
  readonly handler: ApiHandler;
  readonly guest: GuestKernel | undefined;
  /** Of all nodes. */
  readonly ledger: Start[];
  readonly others: () => readonly SimulatedNode[];
  /** What every node reaches. */
  readonly shared: SimulatedStorage;
  /** Between all nodes. */
  readonly streams: PeerStreams;
  /** What outlives guests, on whichever volume. */
  readonly states: FakeStates;
}

export class SimulatedNode {
  readonly name: string;
  readonly host: FakeHost;
  readonly disks: SimulatedDisks;
  /** Why a guest of this name does not start, by `<namespace>/<name>`; not known means that it does. */
  readonly refusals = new Map<string, HypervisorError>();
  /** Called when a write of the agent was taken, before the agent hears of it. */
  onWrite: ((what: string) => void) | undefined;
  /** The files of the built-in guest that the next agent finds. */
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
    this.host = new WatchedHost((definition) => this.#begins(definition), options.states);
    this.host.disks = this.disks;
    this.host.onCopy = (copies) => this.disks.copied(copies);
  }

  /** Volumes whose data this node reaches, by the name of the PersistentVolume. */
  get data(): ReadonlySet<string> {
    const { own, shared } = this.disks;
    return new Set([...own.contents.keys(), ...shared.contents.keys()]);
  }

  /** What is on the disk of a PersistentVolume; undefined where there is none. */
  read(volume: string): string | undefined {
    return this.disks.read(volume);
  }

  /** As a guest would. */
  write(volume: string, text: string): void {
    this.disks.write(volume, text);
  }

  /** Undefined while it is away. */
  get agent(): RunningAgent | undefined {
    return this.#agent;
  }

  async start(): Promise<void> {
    const { name, clock } = this.#options;
    const handler: ApiHandler = async (request) => {
      const answer = await this.#connections.through(this.#options.handler)(request);
      if (request.method !== 'GET') this.onWrite?.(`${request.method} ${request.path}`);
      return answer;
    };
    const user = { name: `system:node:${name}`, groups: ['system:nodes', 'system:authenticated'] };
    const hypervisor = createFakeHypervisor({ clock, host: this.host });
    this.#hypervisor = hypervisor;
    this.#agent = await startNodeAgent({
      name,
      client: createClient(createInProcessTransport({ handler, user, userAgent: 'agent' })),
      hypervisor,
      volumes: this.disks.volumes(),
      guest: this.guest,
      endpoint: { address: '127.0.0.1', port: 10_250 },
      guestUser: undefined,
      peers: this.#options.streams.peersOf(name),
      clock,
      log: silentLog,
    });
  }

  /** The next guest that comes from elsewhere is not let in. */
  refuseNextIncoming(error: HypervisorError): void {
    this.#hypervisor?.failNextReceive(error);
  }

  /** The agent is gone; its guests go on. */
  async stop(): Promise<void> {
    const agent = this.#agent;
    this.#agent = undefined;
    this.#options.streams.lose(this.name);
    await agent?.stop();
  }

  /**
   * From this very moment on the agent can do nothing more and nobody hears it, as after kill -9; whatever it is in the
   * middle of fails. `stop` clears it away then.
   */
  slam(): void {
    this.#connections.lose();
    this.#options.streams.lose(this.name);
    this.host.hold({ changed() {}, lost() {} });
  }

  /** The agent goes on, and reaches nobody until it rejoins. */
  isolate(): void {
    this.#connections.lose();
    this.#options.streams.lose(this.name);
  }

  get isIsolated(): boolean {
    return this.#connections.isLost;
  }

  rejoin(): void {
    this.#connections = new Connections();
  }

  /** Guests that have not ended. */
  living(name?: string): FakeGuest[] {
    return [...this.host.guests()].filter(
      ({ record }) => record.current.state !== 'ended' && (name === undefined || record.name === name),
    );
  }

  #begins(definition: DomainDefinition): void {
    const { ledger, others } = this.#options;
    const { id, ...machine } = definition;
    const { name } = machine;
    const refusal = this.refusals.get(name);
    if (refusal !== undefined) throw refusal;
    const beside = others().flatMap((node) => (node.living(name).length > 0 ? [node.name] : []));
    ledger.push({ node: this.name, id, name, machine, beside });
  }
}

class WatchedHost extends FakeHost {
  readonly #begins: (definition: DomainDefinition) => void;

  constructor(begins: (definition: DomainDefinition) => void, states: FakeStates) {
    super(undefined, { states });
    this.#begins = begins;
  }

  override begin(definition: DomainDefinition, options: { startedAtMs: number; paused: boolean }): void {
    this.#begins(definition);
    super.begin(definition, options);
  }
}

/** Calls the agents as functions: the same paths as over HTTPS. Consoles are not carried. */
export function directConnections(nodes: () => readonly SimulatedNode[]): NodeConnections {
  const agentOf = (node: string): RunningAgent => {
    const found = nodes().find(({ name }) => name === node);
    const agent = found?.isIsolated === true ? undefined : found?.agent;
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
    upgrade: () => Promise.reject(internalError('nodes of this plane have no consoles')),
    close() {},
  };
}
