/**
 * The whole program with real guests: `selfsame up` with nodes on QEMU, and what the guests of the built-in image see.
 * One plane serves all tests of a file; nothing of it is left at the end, guests included.
 */
import { execFileSync } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, readFileSync, readlinkSync, rmSync } from 'node:fs';
import { request } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Duplex } from 'node:stream';
import { parseAllDocuments } from 'yaml';
import { VIRTUAL_MACHINE_INSTANCES, type VirtualMachineInstance } from '#api/virtual-machine-instance/kind.ts';
import { VIRTUAL_MACHINES, type VirtualMachine } from '#api/virtual-machine/kind.ts';
import { CONSOLE_CONTAINER, CREATED_BY_LABEL } from '#api/names.ts';
import type { Client } from '#client/client.ts';
import { createClient } from '#client/rest-client.ts';
import { isApiError } from '#kube/api-error.ts';
import { PODS } from '#kube/core-kinds.ts';
import type { KubeObject, ResourceType, Stored } from '#kube/meta.ts';
import { clientHandshake } from '#lib/websocket-handshake.ts';
import { WebSocketStream } from '#lib/websocket.ts';
import { lastReport, type GuestReport } from '#cli/tour/guest-report.ts';
import { spawnServer, transportTo, type Scope, type ServerProcess } from '#test/support/server-process.ts';

const NAMESPACE = 'default';
const POLL_MS = 200;
const TOKEN_FILE = 'SELFSAME_TOKEN_FILE=';
/** Far beyond what a guest takes on a busy machine; a test that hangs says what it waited for. */
const PATIENCE_MS = 180_000;

export interface RealPlane {
  readonly dataDir: string;
  server: ServerProcess;
  client: Client;
  create<T extends KubeObject>(type: ResourceType<T>, object: T): Promise<Stored<T>>;
  /** Resolves when it is as wanted, or with undefined when it is to be gone and is. */
  until<T extends KubeObject>(
    type: ResourceType<T>,
    name: string,
    ready: (object: Stored<T> | undefined) => boolean,
    options?: { namespace?: string },
  ): Promise<Stored<T> | undefined>;
  guest(name: string): RealGuest;
  /** A verb of the subresources API: `virtualmachines/NAME/restart`. */
  put(path: string, body?: object): Promise<void>;
  /** What a subresource answers: `virtualmachineinstances/NAME/userlist`. */
  read(path: string): Promise<object>;
  /** Starts the program again after it was killed. */
  restart(): Promise<void>;
  /** Processes that run below the data directory, or below a part of it, by their command. */
  processes(options?: { below?: string }): { pid: number; command: string }[];
  /** Programs of pods that have a token of their account, each with the agent that started it. */
  programs(): PodProgram[];
}

export interface PodProgram {
  readonly pid: number;
  /** Another one once its agent is dead. */
  readonly parent: number;
  readonly tokenFile: string;
}

export interface RealGuest {
  vmi(): Promise<Stored<VirtualMachineInstance>>;
  vm(): Promise<Stored<VirtualMachine>>;
  /** Resolves when the condition holds; fails with what was there instead. */
  until(what: string, ready: (vmi: Stored<VirtualMachineInstance> | undefined) => boolean): Promise<void>;
  untilVm(what: string, ready: (vm: Stored<VirtualMachine>) => boolean): Promise<Stored<VirtualMachine>>;
  /** What it said on its console so far. */
  console(): Promise<string>;
  /** Resolves with its report when it has booted (another time than `after`). */
  boots(options?: { afterBootId?: string }): Promise<GuestReport>;
  /** Types a line on its console and resolves with what it says until the pattern comes. */
  says(line: string, pattern: RegExp): Promise<string>;
}

export async function startRealPlane(
  t: Scope,
  { nodes = 2, flags = [] }: { nodes?: number; flags?: readonly string[] } = {},
): Promise<RealPlane> {
  const dataDir = mkdtempSync(join(tmpdir(), 'selfsame-e2e-'));
  const command = ['up', '--nodes', String(nodes), '--accel', 'tcg', ...flags];
  const connect = async (port: number) => {
    const server = spawnServer(t, { dataDir, port, command });
    await server.ready;
    const transport = transportTo(t, server.access());
    const put = async (path: string, body: object = {}) => {
      const verb = `/apis/subresources.kubevirt.io/v1/namespaces/${NAMESPACE}/${path}`;
      await transport.request({ method: 'PUT', path: verb, body });
    };
    const read = async (path: string) => {
      const target = `/apis/subresources.kubevirt.io/v1/namespaces/${NAMESPACE}/${path}`;
      return (await transport.request({ method: 'GET', path: target })).body as object;
    };
    return { server, client: createClient(transport), put, read };
  };
  const plane: RealPlane = {
    dataDir,
    ...(await connect(0)),
    create: (type, object) => plane.client.create(type, object),
    until: (type, name, ready, { namespace } = {}) =>
      eventually(`${type.kind} ${name}`, async () => {
        const object = await getIfThere(plane.client, type, name, namespace);
        return ready(object) ? done(object) : waiting(object?.['status']);
      }),
    guest: (name) => realGuest(() => plane, name),
    async restart() {
      // The same port: the agents of the nodes know no other.
      const { port } = new URL(plane.server.access().server);
      Object.assign(plane, await connect(Number(port)));
    },
    processes: ({ below = dataDir } = {}) => processesBelow(below),
    programs: () => processesBelow(dataDir).flatMap(({ pid }) => podProgram(pid)),
  };
  t.after(async () => {
    // The server first: it would start the agents of its nodes again. They hold its output open: it ends with them.
    const ended = plane.server.kill('SIGKILL');
    killBelow(dataDir);
    await ended;
    releaseBelow(dataDir);
    rmSync(dataDir, { recursive: true, force: true, maxRetries: 10 });
  });
  return plane;
}

/** The documents of a YAML file, as values. */
export function documentsOf(text: string): KubeObject[] {
  return parseAllDocuments(text).map((document) => document.toJS() as KubeObject);
}

async function getIfThere<T extends KubeObject>(
  client: Client,
  type: ResourceType<T>,
  name: string,
  namespace = NAMESPACE,
): Promise<Stored<T> | undefined> {
  try {
    return await client.get(type, { namespace, name });
  } catch (error) {
    if (isApiError(error, 'NotFound')) return undefined;
    throw error;
  }
}

function realGuest(planeNow: () => RealPlane, name: string): RealGuest {
  const at = { namespace: NAMESPACE, name };
  const found = () => getIfThere(planeNow().client, VIRTUAL_MACHINE_INSTANCES, name);
  const guest: RealGuest = {
    vmi: () => planeNow().client.get(VIRTUAL_MACHINE_INSTANCES, at),
    vm: () => planeNow().client.get(VIRTUAL_MACHINES, at),
    async until(what, ready) {
      await eventually(`VMI ${name}: ${what}`, async () => {
        const vmi = await found();
        return ready(vmi) ? done(undefined) : waiting(vmi?.status ?? 'no instance');
      });
    },
    untilVm: (what, ready) =>
      eventually(`VM ${name}: ${what}`, async () => {
        const vm = await guest.vm();
        return ready(vm) ? done(vm) : waiting(vm.status);
      }),
    console: () => consoleOf(planeNow(), name),
    boots: ({ afterBootId } = {}) =>
      eventually(`VM ${name}: its guest has booted`, async () => {
        const text = await guest.console().catch((error: unknown) => String(error));
        const report = lastReport(text);
        const another = report !== undefined && report.facts['bootid'] !== afterBootId;
        return another ? done(report) : waiting(text.slice(-500));
      }),
    async says(line, pattern) {
      const stream = await openConsole(planeNow(), name);
      let heard = '';
      stream.on('data', (chunk: Buffer) => (heard += chunk.toString('latin1')));
      stream.on('error', () => {});
      try {
        stream.write(`${line}\n`);
        return await eventually(`VM ${name}: answers "${line}"`, async () =>
          pattern.test(heard) ? done(heard) : waiting(heard.slice(-500)),
        );
      } finally {
        stream.destroy();
      }
    },
  };
  return guest;
}

type Look<T> = { readonly is: 'done'; readonly value: T } | { readonly is: 'waiting'; readonly seen: unknown };

const done = <T>(value: T): Look<T> => ({ is: 'done', value });
const waiting = (seen: unknown): Look<never> => ({ is: 'waiting', seen });

async function eventually<T>(what: string, look: () => Promise<Look<T>>): Promise<T> {
  const until = performance.now() + PATIENCE_MS;
  for (;;) {
    const now = await look();
    if (now.is === 'done') return now.value;
    if (performance.now() > until) throw new Error(`Waited in vain for ${what}; saw ${JSON.stringify(now.seen)}`);
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
  }
}

/** As `kubectl logs` reads it. */
async function consoleOf(plane: RealPlane, name: string): Promise<string> {
  const vmi = await plane.client.get(VIRTUAL_MACHINE_INSTANCES, { namespace: NAMESPACE, name });
  const labelSelector = `${CREATED_BY_LABEL}=${vmi.metadata.uid}`;
  const pods = await plane.client.list(PODS, { namespace: NAMESPACE, labelSelector });
  // One that has moved has another for a moment.
  const pod = pods.items.find(({ spec }) => spec.nodeName === vmi.status?.nodeName) ?? pods.items[0];
  if (pod === undefined) throw new Error(`VMI ${name} has no pod`);
  const path = `/api/v1/namespaces/${NAMESPACE}/pods/${pod.metadata.name}/log?container=${CONSOLE_CONTAINER}`;
  return await new Promise((resolve, reject) => {
    const call = request(`${plane.server.access().server}${path}`, tlsOf(plane), (answer) => {
      let text = '';
      answer.setEncoding('latin1');
      answer.on('data', (chunk: string) => (text += chunk));
      answer.on('end', () => (answer.statusCode === 200 ? resolve(text) : reject(new Error(text))));
    });
    call.on('error', reject);
    call.end();
  });
}

function openConsole(plane: RealPlane, name: string): Promise<Duplex> {
  const path = `/apis/subresources.kubevirt.io/v1/namespaces/${NAMESPACE}/virtualmachineinstances/${name}/console`;
  const headers = clientHandshake(Buffer.alloc(16, 1), ['plain.kubevirt.io']);
  return new Promise((resolve, reject) => {
    const call = request(`${plane.server.access().server}${path}`, { ...tlsOf(plane), headers });
    call.on('upgrade', (_, socket, head) => resolve(new WebSocketStream(socket, { role: 'client', head })));
    call.on('response', (answer) => {
      let text = '';
      answer.setEncoding('utf8').on('data', (chunk: string) => (text += chunk));
      answer.on('end', () => reject(new Error(`the console answered ${answer.statusCode}: ${text}`)));
    });
    call.on('error', reject);
    call.end();
  });
}

function tlsOf(plane: RealPlane) {
  const { certificateAuthority: ca, clientCertificate: cert, clientKey: key } = plane.server.access();
  return { ca, cert, key, agent: false as const };
}

function processesBelow(dir: string): { pid: number; command: string }[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .flatMap((pid) => {
      try {
        const cwd = readlinkSync(join('/proc', pid, 'cwd'));
        const command = readlinkSync(join('/proc', pid, 'exe'));
        return cwd.startsWith(dir) ? [{ pid: Number(pid), command }] : [];
      } catch {
        return []; // It ended meanwhile, or has no program.
      }
    });
}

function podProgram(pid: number): PodProgram[] {
  try {
    const variables = readFileSync(`/proc/${pid}/environ`, 'latin1').split('\0');
    const tokenFile = variables.find((variable) => variable.startsWith(TOKEN_FILE))?.slice(TOKEN_FILE.length);
    const parent = /^PPid:\s*([0-9]+)$/m.exec(readFileSync(`/proc/${pid}/status`, 'latin1'))?.[1];
    return tokenFile === undefined ? [] : [{ pid, parent: Number(parent), tokenFile }];
  } catch {
    return []; // It ended meanwhile.
  }
}

/** What guests that were killed held: file systems of their state, and the devices below them. */
function releaseBelow(dir: string): void {
  const mounts = readFileSync('/proc/self/mounts', 'utf8').split('\n');
  for (const [, target = ''] of mounts.map((line) => line.split(' '))) {
    if (target.startsWith(`${dir}/`)) execFileSync('umount', [target]);
  }
  for (const device of readdirSync('/sys/block').filter((name) => name.startsWith('loop'))) {
    const backing = join('/sys/block', device, 'loop/backing_file');
    if (!existsSync(backing) || !readFileSync(backing, 'utf8').startsWith(`${dir}/`)) continue;
    execFileSync('losetup', ['--detach', join('/dev', device)]);
  }
}

function killBelow(dir: string): void {
  for (const { pid } of processesBelow(dir)) {
    try {
      process.kill(pid, 'SIGKILL');
    } catch {
      // It ended meanwhile.
    }
  }
}
