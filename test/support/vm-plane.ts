/**
 * Runs the whole plane in one process, with simulated guests and a clock that only the test advances. A test calls
 * `apply`, `settle` (which fails if controllers fight over an object) and `advance`, then reads objects and guests.
 *
 *   test ─► API (engine, webhook, subresources) ◄─ controllers, operator   crashed and started again: restartServer
 *                   ▲
 *                   └─ node agents ─► simulated guests that outlive them    restartAgent, killNode
 */
import assert from 'node:assert/strict';
import type { TestContext } from 'node:test';
import { parse } from 'yaml';
import { FakeClock } from '#lib/testing/fake-clock.ts';
import type { Journal } from '#engine/store/journal.ts';
import { MemoryJournal } from '#engine/store/testing/memory-journal.ts';
import { FakeStates } from '#node/hypervisor/fake/fake-states.ts';
import type { FakeGuest } from '#node/hypervisor/fake/fake-guest.ts';
import type { HypervisorError } from '#node/hypervisor/hypervisor.ts';
import { PeerStreams } from '#test/support/peer-streams.ts';
import { SimulatedStorage } from '#test/support/simulated-disks.ts';
import type { TestResponse, CallOptions, Loose } from '#test/support/test-api.ts';
import { directConnections, SimulatedNode, type Start } from '#test/support/vm-plane-nodes.ts';
import {
  advanceUntil,
  startVmPlaneServer,
  type VmPlaneServer,
  type VmPlaneServerOptions,
} from '#test/support/vm-plane-server.ts';
import type { VerbOptions } from '#api/verbs/verb.ts';

const NAMESPACED = 'namespaces/default';
const URLS: Readonly<Record<string, string>> = {
  VirtualMachine: `/apis/kubevirt.io/v1/${NAMESPACED}/virtualmachines`,
  VirtualMachineInstance: `/apis/kubevirt.io/v1/${NAMESPACED}/virtualmachineinstances`,
  VirtualMachineInstanceMigration: `/apis/kubevirt.io/v1/${NAMESPACED}/virtualmachineinstancemigrations`,
  VirtualMachineIdentity: `/apis/identity.selfsame.io/v1/${NAMESPACED}/virtualmachineidentities`,
  Pod: `/api/v1/${NAMESPACED}/pods`,
  PersistentVolumeClaim: `/api/v1/${NAMESPACED}/persistentvolumeclaims`,
  PersistentVolume: '/api/v1/persistentvolumes',
  ResourceQuota: `/api/v1/${NAMESPACED}/resourcequotas`,
  StorageClass: '/apis/storage.k8s.io/v1/storageclasses',
  Node: '/api/v1/nodes',
  Event: `/api/v1/${NAMESPACED}/events`,
  VirtualMachineSnapshot: `/apis/snapshot.kubevirt.io/v1beta1/${NAMESPACED}/virtualmachinesnapshots`,
  VirtualMachineSnapshotContent: `/apis/snapshot.kubevirt.io/v1beta1/${NAMESPACED}/virtualmachinesnapshotcontents`,
  VirtualMachineRestore: `/apis/snapshot.kubevirt.io/v1beta1/${NAMESPACED}/virtualmachinerestores`,
  VolumeSnapshot: `/apis/snapshot.storage.k8s.io/v1/${NAMESPACED}/volumesnapshots`,
  GuestNetwork: '/apis/network.selfsame.io/v1/guestnetworks',
  NetworkAttachmentDefinition: `/apis/k8s.cni.cncf.io/v1/${NAMESPACED}/network-attachment-definitions`,
  NetworkAddress: '/apis/network.selfsame.io/v1/networkaddresses',
  VolumeSnapshotContent: '/apis/snapshot.storage.k8s.io/v1/volumesnapshotcontents',
};
const SUBRESOURCES = `/apis/subresources.kubevirt.io/v1/${NAMESPACED}`;
const GUEST_VERBS: ReadonlySet<string> = new Set(['pause', 'unpause', 'freeze', 'unfreeze', 'softreboot', 'reset']);

const GUEST_FILES = { kernelPath: '/simulated/vmlinuz', initrdPath: '/simulated/initrd.gz' };

/** Longer than the first retries of a decision that was made on a stale cache. */
const PAUSE_MS = 100;
const QUIET_ROUNDS = 2;
/** More turns of the event loop than work needs that does not wait for the clock. */
const PATIENCE_TURNS = 150;
const MAX_ROUNDS = 150;
const STEP_MS = 5000;

export interface VmPlaneOptions extends Pick<VmPlaneServerOptions, 'storeOptions' | 'eventTtlMs' | 'guestNetwork'> {
  readonly nodes?: number;
  /** In memory by default. */
  readonly journal?: Journal;
}

export async function startVmPlane(t: TestContext, options: VmPlaneOptions = {}): Promise<VmPlane> {
  const plane = new VmPlane(options);
  t.after(() => plane.stop());
  await plane.start();
  return plane;
}

export class VmPlane {
  readonly clock = new FakeClock();
  readonly nodes: readonly SimulatedNode[];
  /** Every start of a guest, on any node. */
  readonly starts: Start[] = [];
  /** Guests for which two nodes answered on the network at the same time. */
  readonly doubleAnswers: string[] = [];
  /** Persistent state, which outlives guests, by its directory. */
  readonly states = new FakeStates();
  /** The storage that all nodes share. */
  readonly shared = new SimulatedStorage();
  /** The streams between the node agents. */
  readonly streams = new PeerStreams((name) => {
    const { isIsolated, agent } = this.node(name);
    return isIsolated ? undefined : agent?.migrations;
  });
  readonly #journal: Journal;
  readonly #options: VmPlaneOptions;
  #server: VmPlaneServer | undefined;

  constructor(options: VmPlaneOptions) {
    const { nodes = 2, journal = new MemoryJournal() } = options;
    this.#options = options;
    this.#journal = journal;
    const { clock, starts: ledger, streams, states } = this;
    const { shared } = this;
    this.nodes = Array.from({ length: nodes }, (_, index): SimulatedNode => {
      const allNodes = () => this.nodes;
      const handler = async (request: Loose) => await this.server.api.core.handler(request);
      const name = `node-${index + 1}`;
      return new SimulatedNode({
        name,
        clock,
        handler,
        guest: GUEST_FILES,
        starts: ledger,
        doubleAnswers: this.doubleAnswers,
        allNodes: allNodes,
        shared,
        streams,
        states,
      });
    });
  }

  get server(): VmPlaneServer {
    if (this.#server === undefined) throw new Error('The plane has no server: it is stopped');
    return this.#server;
  }

  async start(): Promise<void> {
    await this.#startServer();
    for (const node of this.nodes) await advanceUntil(this.clock, node.start());
    await this.settle();
  }

  async stop(): Promise<void> {
    const server = this.#server;
    this.#server = undefined;
    for (const node of this.nodes) await node.stop();
    await server?.crash();
  }

  async #startServer(): Promise<void> {
    const nodes = directConnections(() => this.nodes);
    const { storeOptions, eventTtlMs, guestNetwork } = this.#options;
    const { clock } = this;
    this.#server = await startVmPlaneServer({
      ...{ journal: this.#journal, storeOptions, eventTtlMs, guestNetwork },
      ...{ clock, nodes },
    });
  }

  /**
   * Lets the server accept this many more writes. Resolves when it receives one more; the server must be restarted
   * then.
   */
  cutAfter(writes: number): Promise<'cut'> {
    return this.server.store.cutAfter(writes);
  }

  /**
   * Crashes the server and starts it again; guests run on. With `agents`, the node agents crash with it, as if they
   * shared one host.
   */
  async restartServer({ agents = false }: { readonly agents?: boolean } = {}): Promise<void> {
    const { server } = this;
    this.#server = undefined;
    const stopped = agents ? this.nodes.filter(({ agent }) => agent !== undefined) : [];
    await Promise.all([server.crash(), ...stopped.map((node) => node.stop())]);
    await this.#startServer();
    for (const node of stopped) await advanceUntil(this.clock, node.start());
    // Agents that did not crash reconnect after some seconds.
    await this.advance(STEP_MS * 2);
  }

  async restartAgent(name: string): Promise<void> {
    await this.killNode(name);
    await this.startAgent(name);
  }

  async startAgent(name: string): Promise<void> {
    await advanceUntil(this.clock, this.node(name).start());
    await this.settle();
  }

  /** Stops the agent of the node, so that the node is unreachable. Its guests run on. */
  async killNode(name: string): Promise<void> {
    await this.node(name).stop();
  }

  /** Reconnects the node if it is isolated and starts its agent if it is stopped. */
  async reviveNode(name: string): Promise<void> {
    const node = this.node(name);
    if (node.isIsolated) node.reconnect();
    if (node.agent === undefined) await this.startAgent(name);
  }

  node(name: string): SimulatedNode {
    const node = this.nodes.find((candidate) => candidate.name === name);
    if (node === undefined) throw new Error(`The plane has no node ${name}`);
    return node;
  }

  /** Runs until no part of the plane has anything left to do. */
  async settle(): Promise<void> {
    for (let round = 0, quiet = 0; quiet < QUIET_ROUNDS; round++) {
      const { store } = this.server;
      if (round === MAX_ROUNDS) assert.fail(`the plane does not settle; last writes: ${describeLastWrites(store)}`);
      const before = store.revision;
      await this.#idle();
      await this.clock.advance(PAUSE_MS);
      quiet = store.revision === before ? quiet + 1 : 0;
    }
    await this.#assertNothingOverdue();
    const concurrent = this.starts.filter(({ alreadyRunningOn }) => alreadyRunningOn.length > 0);
    assert.deepEqual(concurrent, [], 'at most one guest of a VM runs at a time');
    assert.deepEqual(this.doubleAnswers, [], 'at most one node answers for a guest on the network');
    assert.deepEqual(this.shared.doubleMounts, [], 'at most one node mounts a block volume at a time');
  }

  /** Fails if a controller has work that no event has woken it for. */
  async #assertNothingOverdue(): Promise<void> {
    const { api, parts } = this.server;
    const controllers = [...(api.controllers ?? []), ...parts.controllers];
    const overdue = async () =>
      (await Promise.all(controllers.map(async (controller) => (await controller.findOverdue?.()) ?? []))).flat();
    const missed = await advanceUntil(this.clock, overdue());
    assert.deepEqual(missed, [], 'each change that a decision depends on wakes its controller');
  }

  async #idle(): Promise<void> {
    const { api, parts } = this.server;
    // An isolated agent never becomes idle: it retries its reports until it is reconnected.
    const agents = this.nodes.flatMap(({ isIsolated, agent }) => (isIsolated || agent === undefined ? [] : [agent]));
    let part = 'the engine';
    const idle = async () => {
      await api.settle();
      for (const running of [...parts.controllers, ...agents]) {
        part = running.name;
        await running.idle();
      }
    };
    await advanceUntil(this.clock, idle(), { turns: PATIENCE_TURNS, where: () => `: ${part} goes on` });
  }

  /** Advances the clock in steps, so that periodic work completes before it is due again. */
  async advance(ms: number): Promise<void> {
    for (let left = ms; left > 0; left -= STEP_MS) {
      await this.clock.advance(Math.min(left, STEP_MS));
      await this.#idle();
    }
    await this.settle();
  }

  call(method: string, url: string, options?: CallOptions): Promise<TestResponse> {
    return this.server.api.call(method, url, options);
  }

  /** Creates the object, or changes it by a merge patch if it exists, and settles. */
  async apply(what: Loose): Promise<Loose> {
    const written = await this.beginApply(what);
    await this.settle();
    return written;
  }

  /** Like `apply`, but does not settle. */
  async beginApply(what: Loose): Promise<Loose> {
    const object = typeof what === 'string' ? parse(what) : what;
    const url = urlOf(object.kind);
    const existing = await this.find(object.kind, object.metadata.name);
    const [method, target] = existing === undefined ? ['POST', url] : ['PATCH', `${url}/${object.metadata.name}`];
    return await this.server.api.ok(method, target, { body: object });
  }

  /** Sends a create request, which the API may refuse. */
  post(object: Loose): Promise<TestResponse> {
    return this.call('POST', urlOf(object.kind), { body: object });
  }

  async find(kind: string, name: string): Promise<Loose> {
    const { status, body } = await this.call('GET', `${urlOf(kind)}/${name}`);
    if (status === 404) return undefined;
    assert.equal(status, 200, JSON.stringify(body));
    return body;
  }

  get(kind: string, name: string): Promise<Loose> {
    return this.server.api.ok('GET', `${urlOf(kind)}/${name}`);
  }

  async list(kind: string): Promise<Loose[]> {
    return (await this.server.api.ok('GET', urlOf(kind))).items;
  }

  async names(kind: string): Promise<string[]> {
    return (await this.list(kind)).map(({ metadata }) => metadata.name);
  }

  async delete(kind: string, name: string, body: Loose = {}): Promise<void> {
    await this.beginDelete(kind, name, body);
    await this.settle();
  }

  /** Like `delete`, but does not settle. */
  async beginDelete(kind: string, name: string, body: Loose = {}): Promise<void> {
    await this.server.api.ok('DELETE', `${urlOf(kind)}/${name}`, { body });
  }

  /**
   * Calls a verb of the subresources API, as virtctl does, and settles. Returns `202`, or the code and message of the
   * refusal.
   */
  async runVerb(verb: string, name: string, options: VerbOptions = {}): Promise<string> {
    const outcome = await this.beginVerb(verb, name, options);
    await this.settle();
    return outcome;
  }

  /** Like `runVerb`, but does not settle. */
  async beginVerb(verb: string, name: string, options: VerbOptions = {}): Promise<string> {
    const resource = GUEST_VERBS.has(verb) ? 'virtualmachineinstances' : 'virtualmachines';
    const url = `${SUBRESOURCES}/${resource}/${name}/${verb}`;
    const { status, body } = await this.call('PUT', url, { body: options });
    return status < 300 ? String(status) : `${status} ${body.message}`;
  }

  /** Returns the guests of the VM that have not ended, on all nodes. */
  guests(vm: string): FakeGuest[] {
    return this.nodes.flatMap((node) => node.livingGuests(`default/${vm}`));
  }

  /** Returns the only guest of the VM; fails if it has none or several. */
  guest(vm: string): FakeGuest {
    const [guest, ...more] = this.guests(vm);
    assert.ok(
      guest !== undefined && more.length === 0,
      `${vm} has ${more.length + (guest === undefined ? 0 : 1)} guests`,
    );
    return guest;
  }

  /** Makes every start of a guest of the VM fail with the error; without an error, starts succeed again. */
  failStarts(vm: string, error?: HypervisorError): void {
    for (const { startErrors } of this.nodes) {
      if (error === undefined) startErrors.delete(`default/${vm}`);
      else startErrors.set(`default/${vm}`, error);
    }
  }

  startsOf(vm: string): readonly Start[] {
    return this.starts.filter(({ name }) => name === `default/${vm}`);
  }

  /** Summarises the VM: printable status, phase of its VMI, states of its guests, number of starts. */
  async summaryOf(vm: string): Promise<string> {
    const { status = {} } = await this.get('VirtualMachine', vm);
    const vmi = await this.find('VirtualMachineInstance', vm);
    const guests = this.guests(vm).map(({ record }) => record.current.state);
    const phase = vmi === undefined ? 'no VMI' : `VMI ${vmi.status?.phase}`;
    return [status.printableStatus, phase, guests.join(' and ') || 'no guest', this.startsOf(vm).length].join(', ');
  }

  async eventsOf(about: string): Promise<string[]> {
    return (await this.list('Event'))
      .filter(({ involvedObject }) => involvedObject.name === about)
      .sort((a, b) => a.metadata.resourceVersion - b.metadata.resourceVersion)
      .map(({ reason, message }) => `${reason} ${message}`);
  }
}

function urlOf(kind: string): string {
  const url = URLS[kind];
  assert.ok(url !== undefined, `the test plane knows no URL for kind ${kind}`);
  return url;
}

/** Lists the objects that were written last, for the message of a failed test. */
function describeLastWrites(store: VmPlaneServer['store']): string {
  return ['virtualmachines.kubevirt.io', 'virtualmachineinstances.kubevirt.io', 'pods', 'nodes', 'events']
    .flatMap((collection) => store.list(collection).entries.map(({ id, revision }) => ({ collection, id, revision })))
    .filter(({ revision }) => revision > store.revision - LAST_WRITES)
    .map(({ collection, id }) => `${collection} ${id}`)
    .join(', ');
}

const LAST_WRITES = 10;

export const KERNEL = { container: { image: 'selfsame/guest' } };

/** A VM with one interface that boots the built-in guest. */
export function aVm(name: string, spec: Loose = {}, { domain = {}, ...template }: Loose = {}): Loose {
  const { devices = {}, ...rest } = domain;
  return {
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachine',
    metadata: { name },
    spec: {
      ...spec,
      template: {
        spec: {
          domain: {
            memory: { guest: '128Mi' },
            firmware: { kernelBoot: KERNEL },
            devices: { interfaces: [{ name: 'default', masquerade: {} }], ...devices },
            ...rest,
          },
          networks: [{ name: 'default', pod: {} }],
          ...template,
        },
      },
    },
  };
}

/** A VM whose disk is on a claim. */
export function aVmOnClaim(name: string, claimName: string, spec: Loose = {}): Loose {
  return aVm(name, spec, {
    domain: { devices: { disks: [{ name: 'root', disk: { bus: 'virtio' } }] } },
    volumes: [{ name: 'root', persistentVolumeClaim: { claimName } }],
  });
}

export function aClaim(name: string, spec: Loose = {}): Loose {
  const resources = { requests: { storage: '64Mi' } };
  return {
    apiVersion: 'v1',
    kind: 'PersistentVolumeClaim',
    metadata: { name },
    spec: { accessModes: ['ReadWriteOnce'], resources, ...spec },
  };
}
