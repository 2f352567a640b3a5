/**
 * The whole plane in this process on real time, with real guests on QEMU: as vm-plane.ts, for what only real guests can
 * show. Each node's hypervisor is seen through a door that a test can slam: from then on the agent behind it can do
 * nothing more, as if it had been killed, and the next one takes over.
 */
import assert from 'node:assert/strict';
import { chmod, mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInProcessTransport } from '#client/in-process.ts';
import { createClient } from '#client/rest-client.ts';
import type { ApiHandler } from '#engine/request.ts';
import { LocalServices } from '#engine/services.ts';
import { systemClock } from '#lib/clock.ts';
import { silentLog } from '#lib/log.ts';
import { startNodeAgent, type RunningAgent } from '#node/agent/node-agent.ts';
import type { Hypervisor } from '#node/hypervisor/hypervisor.ts';
import { guestUser, openQemu } from '#node/hypervisor/qemu/testing/qemu-scene.ts';
import { createVolumes } from '#node/volumes/volumes.ts';
import type { Volumes } from '#node/volumes-port.ts';
import { placeGuestFiles } from '#plane/guest-files.ts';
import { ensureNodeDirs } from '#plane/node-dir.ts';
import { startOwnParts, type OwnParts } from '#plane/embedded/own-parts.ts';
import type { NodeConnections } from '#subresources/node-connections.ts';
import { Connections } from '#test/support/connections.ts';
import { PeerStreams } from '#test/support/peer-streams.ts';
import { startTestApi, type Loose, type TestApi } from '#test/support/test-api.ts';

const GUEST = join(import.meta.dirname, '../../.cache/guest');
const POLL_MS = 50;
/** Far beyond what a guest takes on a busy machine. */
const PATIENCE_MS = 180_000;

/** Called around each call of the hypervisor's port that does something. */
export type Seen = (call: {
  node: string;
  method: string;
  when: 'before' | 'after';
  id: string;
}) => Promise<void> | void;

export class QemuNode {
  readonly name: string;
  readonly dir: string;
  readonly #plane: QemuPlane;
  #hypervisor: Hypervisor | undefined;
  #volumes: Volumes | undefined;
  #agent: RunningAgent | undefined;
  #connections = new Connections();

  constructor(name: string, dir: string, plane: QemuPlane) {
    this.name = name;
    this.dir = dir;
    this.#plane = plane;
  }

  /** Undefined while it is away. */
  get agent(): RunningAgent | undefined {
    return this.#agent;
  }

  get hypervisor(): Hypervisor {
    assert.ok(this.#hypervisor !== undefined, `${this.name} has an agent`);
    return this.#hypervisor;
  }

  async start(): Promise<void> {
    const { name, dir } = this;
    const { shared, handler, streams } = this.#plane;
    await ensureNodeDirs(dir, shared);
    this.#connections = new Connections();
    const mine: ApiHandler = (request) => this.#connections.through(handler)(request);
    const user = { name: `system:node:${name}`, groups: ['system:nodes', 'system:authenticated'] };
    const connections = this.#connections;
    const real = openQemu(dir);
    this.#hypervisor = real;
    this.#volumes = await createVolumes({
      nodeName: name,
      nodeDir: dir,
      sharedDir: shared,
      ...(guestUser && { guestUser }),
      log: silentLog,
    });
    this.#agent = await startNodeAgent({
      name,
      client: createClient(createInProcessTransport({ handler: mine, user, userAgent: 'agent' })),
      hypervisor: watched(
        real,
        (call) => this.#plane.seen?.({ node: name, ...call }),
        () => connections.isLost,
      ),
      volumes: this.#volumes,
      guest: await placeGuestFiles(GUEST, dir),
      endpoint: { address: '127.0.0.1', port: 10_250 },
      guestUser,
      hostDir: dir,
      peers: streams.peersOf(name),
      clock: systemClock,
      log: silentLog,
    });
  }

  /** From this moment on the agent can do nothing more, and nobody hears it. */
  slam(): void {
    this.#connections.lose();
    this.#plane.streams.lose(this.name);
  }

  /** As kill -9 of the agent: whatever it was about to do is not done. Guests go on. */
  async kill(): Promise<void> {
    this.slam();
    const [agent, hypervisor] = [this.#agent, this.#hypervisor];
    this.#agent = undefined;
    this.#hypervisor = undefined;
    await agent?.stop().catch(() => undefined);
    await hypervisor?.close();
  }

  /** kill -9 of every guest here. */
  killGuests(): void {
    for (const { pid, current } of this.#hypervisor?.list() ?? []) {
      if (pid !== undefined && current.state !== 'ended') process.kill(pid, 'SIGKILL');
    }
  }

  /** Nothing is left: guests, mounts, devices. */
  async end(): Promise<void> {
    await this.kill();
    const last = openQemu(this.dir);
    await last.adopt();
    for (const { id } of last.list()) await last.destroy(id).catch(() => undefined);
    await last.close();
    await this.#volumes?.releaseUnwanted(() => false);
  }
}

export class QemuPlane {
  readonly nodes: readonly QemuNode[];
  readonly root: string;
  readonly streams = new PeerStreams((name) => this.node(name).agent?.migrations);
  seen: Seen | undefined;
  #api: TestApi | undefined;
  #parts: OwnParts | undefined;

  private constructor(root: string, nodes: number) {
    this.root = root;
    this.nodes = Array.from({ length: nodes }, (_, index) => {
      const name = `node-${index + 1}`;
      return new QemuNode(name, join(root, 'nodes', name), this);
    });
  }

  static async start({ nodes = 2 } = {}): Promise<QemuPlane> {
    const root = await mkdtemp(join(tmpdir(), 'selfsame-qemu-plane-'));
    const plane = new QemuPlane(root, nodes);
    await mkdir(join(root, 'nodes'), { mode: 0o711 });
    await chmod(root, 0o711);
    const services = new LocalServices();
    plane.#api = await startTestApi({ services });
    const connections = noConnections();
    const { handler } = plane;
    const parts = { handler, services, nodes: () => connections, hosts: () => connections };
    plane.#parts = await startOwnParts({ ...parts, clock: systemClock, log: silentLog });
    for (const node of plane.nodes) await node.start();
    return plane;
  }

  get api(): TestApi {
    assert.ok(this.#api !== undefined);
    return this.#api;
  }

  get handler(): ApiHandler {
    return this.api.core.handler;
  }

  get shared(): string {
    return join(this.root, 'shared');
  }

  node(name: string): QemuNode {
    return this.nodes.find((node) => node.name === name) ?? assert.fail(`there is no node ${name}`);
  }

  async stop(): Promise<void> {
    for (const node of this.nodes) await node.end();
    await this.#parts?.stop();
    await this.#api?.stop();
    await rm(this.root, { recursive: true, force: true, maxRetries: 10 });
  }

  /** Undefined where there is none. */
  async find(url: string): Promise<Loose> {
    const { status, body } = await this.api.call('GET', url);
    return status === 404 ? undefined : body;
  }

  /** Resolves with what is looked for; fails with what was there instead. */
  async until<T>(what: string, look: () => Promise<T | undefined> | T | undefined): Promise<T> {
    const deadline = performance.now() + PATIENCE_MS;
    for (;;) {
      const found = await look();
      if (found !== undefined && found !== false) return found;
      assert.ok(performance.now() < deadline, `waited in vain until ${what}`);
      await new Promise((resolve) => setTimeout(resolve, POLL_MS));
    }
  }
}

/** Whoever wants to reach a node over HTTPS cannot here: the device map asks again later, and nobody opens a console. */
function noConnections(): NodeConnections {
  const refuse = () => Promise.reject(new Error('nodes of this plane have no endpoint'));
  return { put: refuse, get: refuse, post: refuse, upgrade: refuse, close() {} };
}

const KILLED = 'the agent was killed';

function watched(
  real: Hypervisor,
  seen: (call: { method: string; when: 'before' | 'after'; id: string }) => Promise<void> | void,
  isKilled: () => boolean,
): Hypervisor {
  return new Proxy(real, {
    get(target, property) {
      const value: unknown = Reflect.get(target, property, target);
      if (typeof value !== 'function' || typeof property !== 'string') return value;
      if (!WATCHED.has(property)) return value.bind(target);
      return async (...args: unknown[]) => {
        const id = typeof args[0] === 'string' ? args[0] : (args[0] as { id: string }).id;
        if (isKilled()) throw new Error(KILLED);
        await seen({ method: property, when: 'before', id });
        if (isKilled()) throw new Error(KILLED);
        const result: unknown = await Reflect.apply(value, target, args);
        await seen({ method: property, when: 'after', id });
        if (isKilled()) throw new Error(KILLED);
        return result;
      };
    },
  });
}

const WATCHED: ReadonlySet<string> = new Set([
  ...['create', 'pause', 'resume', 'powerDown', 'destroy', 'remove', 'plug', 'unplug'],
  ...['send', 'switchOver', 'recordMigrated', 'leave', 'takeBack', 'receive', 'store', 'commit'],
]);
