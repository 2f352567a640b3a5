/**
 * The whole plane in one process, on simulated guests and a clock that stands still until a test moves it: `apply`,
 * `settle` (fails where parts of it fight), `advance`, then look at objects and guests.
 *
 *   test ─► API (engine, webhook, subresources) ◄─ controllers, operator      lost and started anew: restartServer
 *                   ▲
 *                   └─ agents of nodes ─► simulated guests that outlive them   restartAgent, killNode
 */
import assert from 'node:assert/strict';
import type { TestContext } from 'node:test';
import { parse } from 'yaml';
import type { VerbOptions } from '#api/can.ts';
import { FakeClock } from '#client/testing/fake-clock.ts';
import { MemoryJournal } from '#engine/store/memory/memory-journal.ts';
import { FakeStates } from '#node/hypervisor/fake/fake-states.ts';
import type { FakeGuest } from '#node/hypervisor/fake/fake-guest.ts';
import type { HypervisorError } from '#node/hypervisor/hypervisor.ts';
import { PeerStreams } from '#test/support/peer-streams.ts';
import { SimulatedStorage } from '#test/support/simulated-disks.ts';
import type { Answer, CallOptions, Loose } from '#test/support/test-api.ts';
import { directConnections, SimulatedNode, type Start } from '#test/support/vm-plane-nodes.ts';
import { passingTime, startVmPlaneServer, type VmPlaneServer } from '#test/support/vm-plane-server.ts';

const NAMESPACED = 'namespaces/default';
const URLS: Readonly<Record<string, string>> = {
  VirtualMachine: `/apis/kubevirt.io/v1/${NAMESPACED}/virtualmachines`,
  VirtualMachineInstance: `/apis/kubevirt.io/v1/${NAMESPACED}/virtualmachineinstances`,
  VirtualMachineInstanceMigration: `/apis/kubevirt.io/v1/${NAMESPACED}/virtualmachineinstancemigrations`,
  VirtualMachineIdentity: `/apis/identity.selfsame.io/v1/${NAMESPACED}/virtualmachineidentities`,
  Pod: `/api/v1/${NAMESPACED}/pods`,
  PersistentVolumeClaim: `/api/v1/${NAMESPACED}/persistentvolumeclaims`,
  PersistentVolume: '/api/v1/persistentvolumes',
  StorageClass: '/apis/storage.k8s.io/v1/storageclasses',
  Node: '/api/v1/nodes',
  Event: `/api/v1/${NAMESPACED}/events`,
  VirtualMachineSnapshot: `/apis/snapshot.kubevirt.io/v1beta1/${NAMESPACED}/virtualmachinesnapshots`,
  VirtualMachineSnapshotContent: `/apis/snapshot.kubevirt.io/v1beta1/${NAMESPACED}/virtualmachinesnapshotcontents`,
  VirtualMachineRestore: `/apis/snapshot.kubevirt.io/v1beta1/${NAMESPACED}/virtualmachinerestores`,
  VolumeSnapshot: `/apis/snapshot.storage.k8s.io/v1/${NAMESPACED}/volumesnapshots`,
  VolumeSnapshotContent: '/apis/snapshot.storage.k8s.io/v1/volumesnapshotcontents',
};
const SUBRESOURCES = `/apis/subresources.kubevirt.io/v1/${NAMESPACED}`;
const GUEST_VERBS: ReadonlySet<string> = new Set(['pause', 'unpause', 'freeze', 'unfreeze', 'softreboot', 'reset']);

const GUEST_FILES = { kernelPath: '/simulated/vmlinuz', initrdPath: '/simulated/initrd.gz' };

/** Longer than the first tries of what was decided on an old state. */
const PAUSE_MS = 100;
const QUIET_ROUNDS = 2;
/** More than it takes where nobody waits for the clock. */
const PATIENCE_TURNS = 150;
const MAX_ROUNDS = 150;
const STEP_MS = 5000;

export interface VmPlaneOptions {
  readonly nodes?: number;
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
  /** Every start of a guest on any node. */
  readonly starts: Start[] = [];
  /** What outlives guests, by the directory of their state. */
  readonly states = new FakeStates();
  /** The storage that all nodes reach. */
  readonly shared = new SimulatedStorage();
  /** What the agents say to each other. */
  readonly streams = new PeerStreams((name) => {
    const { isIsolated, agent } = this.node(name);
    return isIsolated ? undefined : agent?.migrations;
  });
  readonly #journal = new MemoryJournal();
  #server: VmPlaneServer | undefined;

  constructor({ nodes = 2 }: VmPlaneOptions) {
    const { clock, starts: ledger, streams, states } = this;
    const { shared } = this;
    this.nodes = Array.from({ length: nodes }, (_, index): SimulatedNode => {
      const others = () => this.nodes;
      const handler = async (request: Loose) => await this.server.api.core.handler(request);
      const name = `node-${index + 1}`;
      return new SimulatedNode({ name, clock, handler, guest: GUEST_FILES, ledger, others, shared, streams, states });
    });
  }

  get server(): VmPlaneServer {
    if (this.#server === undefined) throw new Error('there is no server');
    return this.#server;
  }

  async start(): Promise<void> {
    await this.#startServer();
    for (const node of this.nodes) await passingTime(this.clock, node.start());
    await this.settle();
  }

  async stop(): Promise<void> {
    const server = this.#server;
    this.#server = undefined;
    for (const node of this.nodes) await node.stop();
    await server?.lose();
  }

  async #startServer(): Promise<void> {
    const nodes = directConnections(() => this.nodes);
    this.#server = await startVmPlaneServer({ journal: this.#journal, clock: this.clock, nodes });
  }

  /** The server takes that many writes more. Resolves when it is asked for one more: then it is to be restarted. */
  cutAfter(writes: number): Promise<'cut'> {
    return this.server.store.cutAfter(writes);
  }

  /** `agents`: those are lost with it, as when the machine of all of them is. Guests are not. */
  async restartServer({ agents = false }: { readonly agents?: boolean } = {}): Promise<void> {
    const { server } = this;
    this.#server = undefined;
    const lost = agents ? this.nodes.filter(({ agent }) => agent !== undefined) : [];
    await Promise.all([server.lose(), ...lost.map((node) => node.stop())]);
    await this.#startServer();
    for (const node of lost) await passingTime(this.clock, node.start());
    // Agents that were not lost try again after some seconds.
    await this.advance(STEP_MS * 2);
  }

  async restartAgent(name: string): Promise<void> {
    await this.killNode(name);
    await this.startAgent(name);
  }

  async startAgent(name: string): Promise<void> {
    await passingTime(this.clock, this.node(name).start());
    await this.settle();
  }

  /** Nobody answers for the node any more. Whether its guests run on, nobody knows: here they do. */
  async killNode(name: string): Promise<void> {
    await this.node(name).stop();
  }

  /** Whichever way it was away, if it was. */
  async bringBack(name: string): Promise<void> {
    const node = this.node(name);
    if (node.isIsolated) node.rejoin();
    if (node.agent === undefined) await this.startAgent(name);
  }

  node(name: string): SimulatedNode {
    const node = this.nodes.find((one) => one.name === name);
    if (node === undefined) throw new Error(`there is no node ${name}`);
    return node;
  }

  /** Until nobody has anything to do, nor anything to say. */
  async settle(): Promise<void> {
    for (let round = 0, quiet = 0; quiet < QUIET_ROUNDS; round++) {
      const { store } = this.server;
      if (round === MAX_ROUNDS) assert.fail(`the plane does not come to rest: ${lastWritten(store)}`);
      const before = store.revision;
      await this.#idle();
      await this.clock.advance(PAUSE_MS);
      quiet = store.revision === before ? quiet + 1 : 0;
    }
    await this.#assertNothingOverdue();
    const twice = this.starts.filter(({ beside }) => beside.length > 0);
    assert.deepEqual(twice, [], 'no two guests of one VM run at a time');
    assert.deepEqual(this.shared.doubleMounts, [], 'no two nodes mount a block volume at a time');
  }

  /** Fails where a controller still has something to do and nothing has woken it for that. */
  async #assertNothingOverdue(): Promise<void> {
    const { api, parts } = this.server;
    const controllers = [...(api.controllers ?? []), ...parts.controllers];
    const overdue = async () =>
      (await Promise.all(controllers.map(async (one) => (await one.overdue?.()) ?? []))).flat();
    const missed = await passingTime(this.clock, overdue());
    assert.deepEqual(missed, [], 'a change that a decision reads wakes the controller');
  }

  async #idle(): Promise<void> {
    const { api, parts } = this.server;
    // One that reaches nobody is never done; what it could not tell, it tells after a while.
    const agents = this.nodes.flatMap(({ isIsolated, agent }) => (isIsolated || agent === undefined ? [] : [agent]));
    let part = 'the engine';
    const idle = async () => {
      await api.settle();
      for (const one of [...parts.controllers, ...agents]) {
        part = one.name;
        await one.idle();
      }
    };
    await passingTime(this.clock, idle(), { turns: PATIENCE_TURNS, where: () => `: ${part} goes on` });
  }

  /** In steps, so that what happens every few seconds has come through before the next is due. */
  async advance(ms: number): Promise<void> {
    for (let left = ms; left > 0; left -= STEP_MS) {
      await this.clock.advance(Math.min(left, STEP_MS));
      await this.#idle();
    }
    await this.settle();
  }

  call(method: string, url: string, options?: CallOptions): Promise<Answer> {
    return this.server.api.call(method, url, options);
  }

  /** Makes it, or changes what is there (by a merge patch); everything has come to rest then. */
  async apply(what: Loose): Promise<Loose> {
    const made = await this.put(what);
    await this.settle();
    return made;
  }

  /** As `apply`, but leaves things in motion. */
  async put(what: Loose): Promise<Loose> {
    const object = typeof what === 'string' ? parse(what) : what;
    const url = urlOf(object.kind);
    const there = await this.find(object.kind, object.metadata.name);
    const [method, target] = there === undefined ? ['POST', url] : ['PATCH', `${url}/${object.metadata.name}`];
    return await this.server.api.ok(method, target, { body: object });
  }

  /** Asks for it to be made; may be refused. */
  post(object: Loose): Promise<Answer> {
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
    await this.drop(kind, name, body);
    await this.settle();
  }

  /** As `delete`, but leaves things in motion. */
  async drop(kind: string, name: string, body: Loose = {}): Promise<void> {
    await this.server.api.ok('DELETE', `${urlOf(kind)}/${name}`, { body });
  }

  /** As virtctl: `202`, or the code and what the API says. */
  async ask(verb: string, name: string, options: VerbOptions = {}): Promise<string> {
    const answer = await this.tell(verb, name, options);
    await this.settle();
    return answer;
  }

  /** As `ask`, but leaves things in motion. */
  async tell(verb: string, name: string, options: VerbOptions = {}): Promise<string> {
    const resource = GUEST_VERBS.has(verb) ? 'virtualmachineinstances' : 'virtualmachines';
    const url = `${SUBRESOURCES}/${resource}/${name}/${verb}`;
    const { status, body } = await this.call('PUT', url, { body: options });
    return status < 300 ? String(status) : `${status} ${body.message}`;
  }

  /** Guests of the VM that have not ended, wherever they are. */
  guests(vm: string): FakeGuest[] {
    return this.nodes.flatMap((node) => node.living(`default/${vm}`));
  }

  /** The one guest of the VM. */
  guest(vm: string): FakeGuest {
    const [guest, ...more] = this.guests(vm);
    assert.ok(
      guest !== undefined && more.length === 0,
      `${vm} has ${more.length + (guest === undefined ? 0 : 1)} guests`,
    );
    return guest;
  }

  /** No node starts a guest of the VM; without an error they all do again. */
  refuse(vm: string, error?: HypervisorError): void {
    for (const { refusals } of this.nodes) {
      if (error === undefined) refusals.delete(`default/${vm}`);
      else refusals.set(`default/${vm}`, error);
    }
  }

  startsOf(vm: string): readonly Start[] {
    return this.starts.filter(({ name }) => name === `default/${vm}`);
  }

  /** `Running, Ready, 1 guest, 2 starts`: how the VM shows itself, and how it is. */
  async shown(vm: string): Promise<string> {
    const { status = {} } = await this.get('VirtualMachine', vm);
    const vmi = await this.find('VirtualMachineInstance', vm);
    const guests = this.guests(vm).map(({ record }) => record.current.state);
    const phase = vmi === undefined ? 'no VMI' : `VMI ${vmi.status?.phase}`;
    return [status.printableStatus, phase, guests.join(' and ') || 'no guest', this.startsOf(vm).length].join(', ');
  }

  async events(about: string): Promise<string[]> {
    return (await this.list('Event'))
      .filter(({ involvedObject }) => involvedObject.name === about)
      .sort((a, b) => a.metadata.resourceVersion - b.metadata.resourceVersion)
      .map(({ reason, message }) => `${reason} ${message}`);
  }
}

function urlOf(kind: string): string {
  const url = URLS[kind];
  assert.ok(url !== undefined, `no URL is known for kind ${kind}`);
  return url;
}

/** For the reader of a failed test: what was written last, and is fought about. */
function lastWritten(store: VmPlaneServer['store']): string {
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

/** Its disk is on a claim. */
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
