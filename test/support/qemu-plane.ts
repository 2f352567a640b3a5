/**
 * Runs the whole plane in this process in real time, with real guests on QEMU: the counterpart of vm-plane.ts for what
 * only real guests can show. The hypervisor of each node is wrapped, so that a test can crash its agent: from then on
 * the agent can do nothing more, as if it had been killed, and the next one takes over.
 */
import assert from 'node:assert/strict';
import { chmod, mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInProcessTransport } from '#client/in-process.ts';
import { createClient } from '#client/rest-client.ts';
import type { ApiHandler } from '#engine/request/request.ts';
import { LocalServices } from '#engine/remote/local-services.ts';
import { systemClock } from '#lib/clock.ts';
import { silentLog } from '#lib/log.ts';
import { startNodeAgent, type RunningAgent } from '#node/agent/node-agent.ts';
import type { Hypervisor } from '#node/hypervisor/hypervisor.ts';
import { isSandboxed, openQemu } from '#node/hypervisor/qemu/testing/qemu-scene.ts';
import { createVolumes } from '#node/volumes/local/volumes.ts';
import type { Volumes } from '#node/volumes/volumes-port.ts';
import { placeGuestFiles } from '#plane/node/guest-files.ts';
import { ensureNodeDirs } from '#plane/node/node-dir.ts';
import { startPlaneComponents, type PlaneComponents } from '#plane/embedded/plane-components.ts';
import type { NodeConnections } from '#subresources/node-connections.ts';
import { Connections } from '#test/support/connections.ts';
import { PeerStreams } from '#test/support/peer-streams.ts';
import { startTestApi, type Loose, type TestApi } from '#test/support/test-api.ts';

const GUEST = join(import.meta.dirname, '../../.cache/guest');
const POLL_MS = 50;
/** Far longer than a guest needs on a busy machine. */
const PATIENCE_MS = 180_000;

/** Called before and after each call of the hypervisor that changes something. */
export type CallListener = (call: {
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

  /** The agent, or undefined while it is stopped. */
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
    const wrappedHandler: ApiHandler = (request) => this.#connections.wrap(handler)(request);
    const user = { name: `system:node:${name}`, groups: ['system:nodes', 'system:authenticated'] };
    const connections = this.#connections;
    const real = openQemu(dir);
    this.#hypervisor = real;
    this.#volumes = await createVolumes({
      nodeName: name,
      nodeDir: dir,
      sharedDir: shared,
      log: silentLog,
    });
    this.#agent = await startNodeAgent({
      name,
      client: createClient(createInProcessTransport({ handler: wrappedHandler, user, userAgent: 'agent' })),
      hypervisor: wrapHypervisor(
        real,
        (call) => this.#plane.onCall?.({ node: name, ...call }),
        () => connections.isBroken,
      ),
      volumes: this.#volumes,
      guest: await placeGuestFiles(GUEST, dir),
      endpoint: { address: '127.0.0.1', port: 10_250 },
      sandboxed: isSandboxed,
      hostDir: dir,
      peers: streams.peersOf(name),
      clock: systemClock,
      log: silentLog,
    });
  }

  /** Crashes the agent: from now on it can do nothing more and reaches nothing. */
  crashAgent(): void {
    this.#connections.breakAll();
    this.#plane.streams.breakStreams(this.name);
  }

  /** Kills the agent, like kill -9: whatever it was about to do is not done. Guests run on. */
  async killAgent(): Promise<void> {
    this.crashAgent();
    const [agent, hypervisor] = [this.#agent, this.#hypervisor];
    this.#agent = undefined;
    this.#hypervisor = undefined;
    await agent?.stop().catch(() => undefined);
    await hypervisor?.close();
  }

  /** Kills every guest of the node with SIGKILL. */
  killGuests(): void {
    for (const { pid, current } of this.#hypervisor?.list() ?? []) {
      if (pid !== undefined && current.state !== 'ended') process.kill(pid, 'SIGKILL');
    }
  }

  /** Stops the agent and removes guests, mounts and devices. */
  async destroy(): Promise<void> {
    await this.killAgent();
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
  onCall: CallListener | undefined;
  #api: TestApi | undefined;
  #parts: PlaneComponents | undefined;

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
    const connections = unreachableNodes();
    const { handler } = plane;
    const { metrics } = plane.api.core;
    const parts = { handler, services, metrics, nodes: () => connections, hosts: () => connections };
    plane.#parts = await startPlaneComponents({ ...parts, clock: systemClock, log: silentLog });
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
    return this.nodes.find((node) => node.name === name) ?? assert.fail(`the plane has no node ${name}`);
  }

  async stop(): Promise<void> {
    for (const node of this.nodes) await node.destroy();
    await this.#parts?.stop();
    await this.#api?.stop();
    await rm(this.root, { recursive: true, force: true, maxRetries: 10 });
  }

  /** Returns the object, or undefined if it does not exist. */
  async find(url: string): Promise<Loose> {
    const { status, body } = await this.api.call('GET', url);
    return status === 404 ? undefined : body;
  }

  /** Polls until the check returns a value, and returns that value. Fails after a while. */
  async awaitValue<T>(what: string, check: () => Promise<T | undefined> | T | undefined): Promise<T> {
    const deadline = performance.now() + PATIENCE_MS;
    for (;;) {
      const found = await check();
      if (found !== undefined && found !== false) return found;
      assert.ok(performance.now() < deadline, `timed out waiting for ${what}`);
      await new Promise((resolve) => setTimeout(resolve, POLL_MS));
    }
  }
}

/** Connections to nodes without an HTTPS endpoint: the device map retries later, and tests open no consoles. */
function unreachableNodes(): NodeConnections {
  const reject = () => Promise.reject(new Error('nodes of this plane have no endpoint'));
  return { put: reject, get: reject, post: reject, upgrade: reject, close() {} };
}

const KILLED = 'the agent is killed';

function wrapHypervisor(
  real: Hypervisor,
  onCall: (call: { method: string; when: 'before' | 'after'; id: string }) => Promise<void> | void,
  isKilled: () => boolean,
): Hypervisor {
  return new Proxy(real, {
    get(target, property) {
      const value: unknown = Reflect.get(target, property, target);
      if (typeof value !== 'function' || typeof property !== 'string') return value;
      if (!WRAPPED_METHODS.has(property)) return value.bind(target);
      return async (...args: unknown[]) => {
        const id = typeof args[0] === 'string' ? args[0] : (args[0] as { id: string }).id;
        if (isKilled()) throw new Error(KILLED);
        await onCall({ method: property, when: 'before', id });
        if (isKilled()) throw new Error(KILLED);
        const result: unknown = await Reflect.apply(value, target, args);
        await onCall({ method: property, when: 'after', id });
        if (isKilled()) throw new Error(KILLED);
        return result;
      };
    },
  });
}

const WRAPPED_METHODS: ReadonlySet<string> = new Set([
  ...['create', 'pause', 'resume', 'powerDown', 'destroy', 'remove', 'plug', 'unplug'],
  ...['send', 'switchOver', 'recordMigrated', 'leave', 'takeBack', 'receive', 'store', 'commit'],
]);
