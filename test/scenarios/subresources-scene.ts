/** subresources.kubevirt.io on the real API behind TLS, with a real node endpoint whose guests are simulated. */
import assert from 'node:assert/strict';
import { PassThrough, type Duplex, Readable, Writable } from 'node:stream';
import type { Programs } from '#cli/programs.ts';
import { runVirtctl } from '#cli/run.ts';
import { VIRTUAL_MACHINES } from '#api/virtual-machine/kind.ts';
import { VIRTUAL_MACHINE_INSTANCES } from '#api/virtual-machine-instance/kind.ts';
import { createInProcessTransport } from '#client/in-process.ts';
import { createClient } from '#client/rest-client.ts';
import type { Client } from '#client/client.ts';
import type { ClusterAccess } from '#client/kubeconfig.ts';
import { startControllers } from '#engine/controllers/start.ts';
import { apiVersionOf, type ObjectMeta, type OwnerReference, type ResourceType } from '#kube/meta.ts';
import { silentLog } from '#lib/log.ts';
import { systemClock } from '#lib/clock.ts';
import { NoDisplayError, type ContainerLog, type EndpointAgent } from '#node/endpoint/endpoint-agent.ts';
import { startNodeEndpoint } from '#node/endpoint/node-endpoint.ts';
import type { GuestPort } from '#node/hypervisor/guest-access.ts';
import type { DomainInfo, DomainState } from '#node/hypervisor/hypervisor.ts';
import { apiServiceObjects, SUBRESOURCES_SERVICE } from '#operator/objects/api-services.ts';
import { definitions } from '#operator/objects/definitions.ts';
import { serviceRoles } from '#operator/roles/services.ts';
import { createNodeConnections } from '#subresources/node-connections.ts';
import { createSubresourcesApi } from '#subresources/subresources-api.ts';
import { issueServerCertificate } from '#test/support/extension-server.ts';
import { startFrontServer, type FrontServer } from '#test/support/front-server.ts';
import { aNode, issuerOf } from '#test/support/kubelet-server.ts';
import { sendHttp1Request } from '#test/support/raw-https.ts';
import type { Scope } from '#test/support/server-process.ts';
import type { Loose } from '#test/support/test-api.ts';

export const NODE = 'node-1';
const ACCOUNT = 'system:serviceaccount:selfsame-system:selfsame-subresources';

export interface SubresourceResponse {
  readonly status: number;
  readonly body: Loose;
}

/** Creates and reads VMs and instances of the scene. */
interface Builders {
  /** Returns a name that is not used yet. */
  newName(): string;
  createVm(name: string, spec: Loose, status?: Loose): Promise<void>;
  /**
   * Creates an instance, on the scene's node unless the options say otherwise. `spec` is added to its spec, other
   * options to its status.
   */
  createVmi(name: string, status: Loose): Promise<Loose>;
  patchStatus(type: ResourceType, name: string, status: Loose): Promise<Loose>;
  readVm(name: string): Promise<Loose>;
  readVmi(name: string): Promise<Loose>;
}

export interface SubresourcesScene extends Builders {
  readonly front: FrontServer;
  readonly node: FakeNode;
  readonly admin: Client;
  /** Returns access to the endpoint of the node with these credentials. */
  endpoint(access: ClusterAccess): ClusterAccess;
  /** Called before each of our requests reaches the API, so that a test can change objects in between. */
  onRead?: (() => Promise<void>) | undefined;
  call(
    method: string,
    path: string,
    options?: { body?: unknown; access?: ClusterAccess },
  ): Promise<SubresourceResponse>;
  /** Programs on the machine of virtctl; none unless a test adds some. */
  programs: Programs;
  /** The promise that virtctl waits for when it runs until Ctrl-C; pending for ever unless a test replaces it. */
  interrupted: () => Promise<void>;
  /** Runs virtctl once. */
  virtctl(...argv: string[]): Promise<{ code: number; out: string; err: string }>;
  /** Runs virtctl once with a user at the keyboard. */
  virtctlInteractive(stdin: Readable, stdout: Writable, ...argv: string[]): Promise<{ code: number; err: string }>;
  /** Waits until the controllers have nothing left to do. */
  settle(): Promise<void>;
  stop(): Promise<void>;
}

export async function startSubresourcesScene(t: Scope): Promise<SubresourcesScene> {
  const front = await startFrontServer(t);
  const running = await startControllers({ core: front.core, caPem: front.caPem, clock: systemClock, log: silentLog });
  const settle = async () => {
    for (let i = 0; i < 20; i++) {
      await Promise.all(running.controllers.map((controller) => controller.idle()));
      await new Promise((resolve) => setImmediate(resolve));
    }
    await front.core.aggregation.settled();
  };
  const clientOf = (name: string, groups: string[]) => {
    const user = { name, groups };
    return createClient(createInProcessTransport({ handler: front.core.handler, user, userAgent: 'test' }));
  };
  await installKinds(front);
  await settle();

  const node = new FakeNode();
  const served = issueServerCertificate(issuerOf(front.pkiDir), ['127.0.0.1']);
  const endpoint = await startNodeEndpoint({
    host: '127.0.0.1',
    port: 0,
    ...served,
    ca: front.caPem,
    agent: node,
    log: silentLog,
    clock: systemClock,
  });
  await front.create('/api/v1/nodes', aNode(NODE, endpoint.port));

  const own = clientOf(ACCOUNT, ['system:serviceaccounts', 'system:authenticated']);
  const watched: Client = {
    ...own,
    async get(type, name, options) {
      const object = await own.get(type, name, options);
      await scene.onRead?.();
      return object;
    },
  };
  const { clientCertificate: cert = '', clientKey: key = '' } = front.accessOf('selfsame-subresources');
  const nodes = createNodeConnections({ client: own, cert, key, ca: front.caPem, clock: systemClock });
  const api = createSubresourcesApi({ client: watched, nodes, log: silentLog, clock: systemClock });
  front.services.register('selfsame-system', SUBRESOURCES_SERVICE, { api });
  for (const { object } of apiServiceObjects) await front.create(API_SERVICES, object);
  await settle();

  const admin = clientOf('admin', ['system:masters', 'system:authenticated']);
  const scene: SubresourcesScene = {
    front,
    node,
    admin,
    ...createBuilders(admin),
    settle,
    programs: { find: async () => undefined, run: async () => 127, self: ['virtctl'], platform: 'linux' },
    interrupted: () => new Promise(() => {}),
    endpoint: (access) => ({ ...access, server: `https://127.0.0.1:${endpoint.port}` }),
    async call(method, path, { body, access = front.admin } = {}) {
      const headers = { 'content-type': 'application/json' };
      const text = body === undefined ? {} : { body: JSON.stringify(body) };
      const answer = await sendHttp1Request(access, { method, path, headers, ...text });
      return { status: answer.status, body: answer.text === '' ? '' : JSON.parse(answer.text) };
    },
    async virtctl(...argv) {
      const out = new Sink();
      const { code, err } = await scene.virtctlInteractive(Readable.from([]), out, ...argv);
      return { code, err, out: out.text };
    },
    async virtctlInteractive(stdin, stdout, ...argv) {
      const stderr = new Sink();
      const code = await runVirtctl({
        argv: ['--kubeconfig', '/kubeconfig', ...argv],
        program: 'virtctl',
        env: {},
        home: '/nowhere',
        readFile: () => kubeconfigOf(front.admin),
        terminal: { stdin, stdout, stderr },
        clock: systemClock,
        programs: scene.programs,
        untilInterrupted: () => scene.interrupted(),
      });
      return { code, err: stderr.text };
    },
    async stop() {
      nodes.close();
      await endpoint.stop();
      await running.stop();
      await front.stop();
    },
  };
  return scene;
}

function createBuilders(admin: Client): Builders {
  let count = 0;
  const domain = { devices: {} };
  const named = (name: string) => ({ namespace: 'default', name });
  const patchStatus: SubresourcesScene['patchStatus'] = (type, name, status) =>
    admin.patch(type, named(name), { type: 'merge', body: { status } }, { subresource: 'status' });
  const create = (type: ResourceType, name: string, spec: Loose, metadata: ObjectMeta = {}) =>
    admin.create(type, {
      apiVersion: apiVersionOf(type),
      kind: type.kind,
      metadata: { ...named(name), ...metadata },
      spec,
    });
  /** Returns the owner reference to the VM of this name, if it exists. */
  const ownerOf = async (name: string): Promise<OwnerReference[]> => {
    const { items } = await admin.list(VIRTUAL_MACHINES, { namespace: 'default' });
    const vm = items.find(({ metadata }) => metadata.name === name);
    const { kind } = VIRTUAL_MACHINES;
    const apiVersion = apiVersionOf(VIRTUAL_MACHINES);
    return vm === undefined ? [] : [{ apiVersion, kind, name, uid: vm.metadata.uid, controller: true }];
  };
  return {
    patchStatus,
    newName: () => `vm-${count++}`,
    async createVm(name, spec, status) {
      await create(VIRTUAL_MACHINES, name, { template: { spec: { domain } }, ...spec });
      if (status !== undefined) await patchStatus(VIRTUAL_MACHINES, name, status);
    },
    async createVmi(name, { spec = {}, ...status }) {
      await create(VIRTUAL_MACHINE_INSTANCES, name, { domain, ...spec }, { ownerReferences: await ownerOf(name) });
      return await patchStatus(VIRTUAL_MACHINE_INSTANCES, name, { nodeName: NODE, ...status });
    },
    readVm: (name) => admin.get(VIRTUAL_MACHINES, named(name)),
    readVmi: (name) => admin.get(VIRTUAL_MACHINE_INSTANCES, named(name)),
  };
}

const API_SERVICES = '/apis/apiregistration.k8s.io/v1/apiservices';

async function installKinds(front: FrontServer): Promise<void> {
  const crds = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions';
  for (const { object } of definitions) await front.create(crds, object);
  const rbac = { apiVersion: 'rbac.authorization.k8s.io/v1', metadata: { name: 'subresources' } };
  const path = '/apis/rbac.authorization.k8s.io/v1';
  await front.create(`${path}/clusterroles`, {
    ...rbac,
    kind: 'ClusterRole',
    rules: serviceRoles[SUBRESOURCES_SERVICE],
  });
  const roleRef = { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'subresources' };
  const subjects = [{ kind: 'User', apiGroup: 'rbac.authorization.k8s.io', name: ACCOUNT }];
  await front.create(`${path}/clusterrolebindings`, { ...rbac, kind: 'ClusterRoleBinding', roleRef, subjects });
}

export function kubeconfigOf({ server, certificateAuthority, clientCertificate, clientKey }: ClusterAccess): string {
  const base64 = (text: string | undefined) => Buffer.from(text ?? '').toString('base64');
  return JSON.stringify({
    'current-context': 'test',
    clusters: [{ name: 'test', cluster: { server, 'certificate-authority-data': base64(certificateAuthority) } }],
    users: [
      {
        name: 'test',
        user: { 'client-certificate-data': base64(clientCertificate), 'client-key-data': base64(clientKey) },
      },
    ],
    contexts: [{ name: 'test', context: { cluster: 'test', user: 'test' } }],
  });
}

/** A stream that keeps what is written. */
/** Asserts that virtctl printed this error and nothing else. A message that ends in `...` is the beginning of the error. */
export function assertRefused({ code, out, err }: { code: number; out: string; err: string }, message: string): void {
  const [text = '', usage] = err.replace(/\n$/, '').split('\nUsage: ');
  const shown = message.endsWith('...') ? `${text.slice(0, `error: ${message}`.length - 3)}...` : text;
  assert.deepEqual({ code, out, shown }, { code: usage === undefined ? 1 : 2, out: '', shown: `error: ${message}` });
}

export class Sink extends Writable {
  text = '';
  override _write(chunk: Buffer, _encoding: string, done: () => void): void {
    this.text += chunk.toString();
    this.emit('grown');
    done();
  }
}

/** An image of one black pixel, which no real guest shows. */
export const PICTURE = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR42mNgAAAAAgABUcdcNAAAAABJRU5ErkJggg==',
  'base64',
);

function echoing(first: string): Duplex {
  const guest = new PassThrough({ transform: (chunk, _, done) => done(null, String(chunk).toUpperCase()) });
  if (first !== '') guest.push(first);
  return guest;
}

/** The guests of one node as the endpoint sees them. Records what is done to them. */
export class FakeNode implements EndpointAgent {
  readonly done: string[] = [];
  readonly #states = new Map<string, DomainState>();
  readonly consoles = new Map<string, Duplex>();
  readonly displays = new Map<string, Duplex>();
  readonly ports = new Map<string, Duplex>();
  /** True: its guests have no display. */
  isHeadless = false;
  nextError: Error | undefined;
  /** The answer to filesystemlist; undefined for the default answer. */
  fileSystems: object | undefined;

  run(name: string, state: DomainState = { state: 'running' }): void {
    this.#states.set(name, state);
  }

  find(namespace: string, name: string): DomainInfo | undefined {
    const current = this.#states.get(name);
    if (namespace !== 'default' || current === undefined) return undefined;
    return { id: name, name, machine: 'pc-q35-7.2', startedAtMs: 0, current, deviceEvents: 0 };
  }

  pause(id: string): Promise<void> {
    return this.#note('pause', id, 'paused');
  }

  resume(id: string): Promise<void> {
    return this.#note('resume', id, 'running');
  }

  softReboot(id: string): Promise<void> {
    return this.#note('softReboot', id, 'running');
  }

  reset(id: string): Promise<void> {
    return this.#note('reset', id, 'running');
  }

  freeze(id: string, seconds: number): Promise<void> {
    return this.#note('freeze', `${id} ${seconds}`, 'running');
  }

  unfreeze(id: string): Promise<void> {
    return this.#note('unfreeze', id, 'running');
  }

  async readGuest(id: string, what: string): Promise<object> {
    if (this.nextError !== undefined) throw this.nextError;
    return (what === 'filesystemlist' && this.fileSystems) || { asked: `${what} of ${id}` };
  }

  /** Opens the console of a guest that echoes in capitals. */
  async openConsole(id: string): Promise<Duplex> {
    const guest = echoing('login: ');
    this.consoles.set(id, guest);
    return guest;
  }

  /** Opens a display that introduces itself as a VNC server and echoes in capitals. */
  async openDisplay(id: string): Promise<Duplex> {
    if (this.isHeadless) throw new NoDisplayError();
    const display = echoing('RFB 003.008\n');
    this.displays.set(id, display);
    return display;
  }

  async screenshot(id: string, { moveCursor }: { readonly moveCursor: boolean }): Promise<Buffer> {
    if (this.isHeadless) throw new NoDisplayError();
    this.done.push(`screenshot ${id}${moveCursor ? ' moved' : ''}`);
    return PICTURE;
  }

  async openPort(id: string, { port: number, protocol }: GuestPort): Promise<Duplex> {
    if (this.nextError !== undefined) throw this.nextError;
    this.done.push(`port ${id} ${number}/${protocol}`);
    const port = echoing('');
    this.ports.set(id, port);
    return port;
  }

  logs(namespace: string, pod: string, container: string): ContainerLog | undefined {
    if (namespace !== 'default' || pod !== 'launcher' || container !== 'compute') return undefined;
    return {
      timed: false,
      read: async () => Buffer.from('one\ntwo\nthree\n'),
      async *follow() {
        yield Buffer.from('one\ntwo\n');
        yield Buffer.from('three\n');
      },
    };
  }

  async #note(what: string, id: string, state: 'running' | 'paused'): Promise<void> {
    if (this.nextError !== undefined) throw this.nextError;
    this.done.push(`${what} ${id}`);
    this.#states.set(id, { state });
  }
}
