/**
 * Runs the whole program with real guests: `selfsame up` with nodes on QEMU, and reads what guests of the built-in
 * image see. One plane serves all tests of a file; nothing of it remains at the end, guests included.
 */
import { execFileSync } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { Agent, request } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Duplex } from 'node:stream';
import { text as readText } from 'node:stream/consumers';
import { parseAllDocuments } from 'yaml';
import { VIRTUAL_MACHINE_INSTANCES, type VirtualMachineInstance } from '#api/virtual-machine-instance/kind.ts';
import { VIRTUAL_MACHINES, type VirtualMachine } from '#api/virtual-machine/kind.ts';
import { CONSOLE_CONTAINER, CREATED_BY_LABEL } from '#api/names.ts';
import type { Client } from '#client/client.ts';
import { createClient } from '#client/rest-client.ts';
import { isApiError } from '#kube/api-error.ts';
import { PODS } from '#kube/core-kinds.ts';
import type { KubeObject, ResourceType, Stored } from '#kube/meta.ts';
import { systemClock } from '#lib/clock.ts';
import { requestWebSocket } from '#lib/websocket/websocket-handshake.ts';
import { lastReport, type GuestReport } from '#cli/tour/guest-report.ts';
import { removeSandboxes } from '#node/hypervisor/qemu/testing/qemu-scene.ts';
import { removeNetworks } from '#plane/node/remove-networks.ts';
import { killProcessesBelow, processesBelow } from '#test/support/processes-below.ts';
import { spawnServer, openTransport, type Scope, type ServerProcess } from '#test/support/server-process.ts';

const NAMESPACE = 'default';
const POLL_MS = 200;
/** Above the subnet of Services, 10.96.0.0/16. */
const FIRST_SUBNET = 100;
const SUBNETS = 140;
/** True if scripts/run-tests.sh has made a network namespace for the tests. Otherwise planes make no bridges. */
export const isNetworkPrivate = process.env['SELFSAME_TEST_NETWORK'] === 'private';
const TOKEN_FILE = 'SELFSAME_TOKEN_FILE=';
/** Far longer than a guest needs on a busy machine. A test that times out reports what it waited for. */
const PATIENCE_MS = 180_000;

/** A plane with real guests, however its processes were started. */
export interface GuestPlane {
  server: Pick<ServerProcess, 'access'>;
  client: Client;
  /** True if the engine does not trust the certificates of the nodes, which only matters for logs (docs/any-cluster.md). */
  readonly hasOtherAuthority?: boolean;
  create<T extends KubeObject>(type: ResourceType<T>, object: T): Promise<Stored<T>>;
  /** Waits until the object is as expected. Resolves with undefined if it is expected to be gone. */
  awaitObject<T extends KubeObject>(
    type: ResourceType<T>,
    name: string,
    ready: (object: Stored<T> | undefined) => boolean,
    options?: { namespace?: string },
  ): Promise<Stored<T> | undefined>;
  guest(name: string): RealGuest;
}

type ConnectedPlane = Pick<GuestPlane, 'client' | 'server' | 'hasOtherAuthority'>;

export interface RealPlane extends GuestPlane {
  readonly dataDir: string;
  server: ServerProcess;
  /** Calls a verb of the subresources API: `virtualmachines/NAME/restart`. */
  put(path: string, body?: object): Promise<void>;
  /** Returns the response of a subresource: `virtualmachineinstances/NAME/userlist`. */
  read(path: string): Promise<object>;
  /** Starts the program again after it was killed. */
  restart(): Promise<void>;
  /** Returns the processes that run below the data directory, or below a part of it. */
  processes(options?: { below?: string }): { pid: number; command: string }[];
  /** Returns the programs of pods that have a token of their account, each with the agent that started it. */
  programs(): PodProgram[];
}

export interface PodProgram {
  readonly pid: number;
  /** The agent that started the program; another process after that agent has died. */
  readonly parent: number;
  readonly tokenFile: string;
}

export interface RealGuest {
  vmi(): Promise<Stored<VirtualMachineInstance>>;
  vm(): Promise<Stored<VirtualMachine>>;
  /** Waits until the condition holds; a timeout reports the last status. */
  awaitVmi(what: string, ready: (vmi: Stored<VirtualMachineInstance> | undefined) => boolean): Promise<void>;
  awaitVm(what: string, ready: (vm: Stored<VirtualMachine>) => boolean): Promise<Stored<VirtualMachine>>;
  /** Returns the console output so far. */
  console(): Promise<string>;
  /** Waits for the report of the guest after a boot other than `afterBootId`. */
  awaitBoot(options?: { afterBootId?: string }): Promise<GuestReport>;
  /** Types a line on the console and returns the output up to the match of the pattern. */
  runCommand(line: string, pattern: RegExp): Promise<string>;
}

export async function startRealPlane(
  t: Scope,
  { nodes = 2, flags = [] }: { nodes?: number; flags?: readonly string[] } = {},
): Promise<RealPlane> {
  const dataDir = mkdtempSync(join(tmpdir(), 'selfsame-e2e-'));
  const command = ['up', '--nodes', String(nodes), '--accel', 'tcg', ...guestSubnets(), ...flags];
  const connect = async (port: number) => {
    const server = spawnServer(t, { dataDir, port, command });
    await server.ready;
    const transport = openTransport(t, server.access());
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
    ...guestAccess(() => plane),
    async restart() {
      // The agents of the nodes know only this port.
      const { port } = new URL(plane.server.access().server);
      Object.assign(plane, await connect(Number(port)));
    },
    processes: ({ below = dataDir } = {}) => processesBelow(below),
    programs: () => processesBelow(dataDir).flatMap(({ pid }) => findPodProgram(pid)),
  };
  t.after(async () => {
    // The server first, because it would start its agents again. The agents hold its output open, so it closes with
    // them.
    const ended = plane.server.kill('SIGKILL');
    killProcessesBelow(dataDir);
    await ended;
    await removeNetworks(dataDir);
    for (const node of readdirSync(join(dataDir, 'nodes'))) await removeSandboxes(join(dataDir, 'nodes', node));
    releaseMountsBelow(dataDir);
    rmSync(dataDir, { recursive: true, force: true, maxRetries: 10 });
  });
  return plane;
}

/** Returns the functions of a plane that use its guests. */
export function guestAccess(plane: () => ConnectedPlane): Omit<GuestPlane, keyof ConnectedPlane> {
  return {
    create: (type, object) => plane().client.create(type, object),
    awaitObject: (type, name, ready, { namespace } = {}) =>
      pollUntilDone(`${type.kind} ${name}`, async () => {
        const object = await getIfExists(plane().client, type, name, namespace);
        return ready(object) ? done(object) : stillWaiting(object?.['status']);
      }),
    guest: (name) => realGuest(plane, name),
  };
}

/** Each test file has subnets of its own, because planes of several files run at the same time on one network. */
export function guestSubnets(): string[] {
  const number = FIRST_SUBNET + (process.pid % SUBNETS);
  const subnets = `10.${number}.0.0/16,fd00:5e1f:${number.toString(16)}::/64`;
  return ['--guest-subnets', isNetworkPrivate ? subnets : 'none'];
}

/** Returns the documents of a YAML file as values. */
export function parseDocuments(text: string): KubeObject[] {
  return parseAllDocuments(text).map((document) => document.toJS() as KubeObject);
}

async function getIfExists<T extends KubeObject>(
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

function realGuest(currentPlane: () => ConnectedPlane, name: string): RealGuest {
  const at = { namespace: NAMESPACE, name };
  const findVmi = () => getIfExists(currentPlane().client, VIRTUAL_MACHINE_INSTANCES, name);
  const guest: RealGuest = {
    vmi: () => currentPlane().client.get(VIRTUAL_MACHINE_INSTANCES, at),
    vm: () => currentPlane().client.get(VIRTUAL_MACHINES, at),
    async awaitVmi(what, ready) {
      await pollUntilDone(`VMI ${name}: ${what}`, async () => {
        const vmi = await findVmi();
        return ready(vmi) ? done(undefined) : stillWaiting(vmi?.status ?? 'no instance');
      });
    },
    awaitVm: (what, ready) =>
      pollUntilDone(`VM ${name}: ${what}`, async () => {
        const vm = await guest.vm();
        return ready(vm) ? done(vm) : stillWaiting(vm.status);
      }),
    console: () => readConsole(currentPlane(), name),
    awaitBoot: ({ afterBootId } = {}) =>
      pollUntilDone(`VM ${name}: boot of its guest`, async () => {
        const text = await guest.console().catch((error: unknown) => String(error));
        const report = lastReport(text);
        const isOtherBoot = report !== undefined && report.facts['bootid'] !== afterBootId;
        return isOtherBoot ? done(report) : stillWaiting(text.slice(-500));
      }),
    async runCommand(line, pattern) {
      const stream = await openConsole(currentPlane(), name);
      let output = '';
      stream.on('data', (chunk: Buffer) => (output += chunk.toString('latin1')));
      stream.on('error', () => {});
      try {
        stream.write(`${line}\n`);
        return await pollUntilDone(`VM ${name}: answer to "${line}"`, async () =>
          pattern.test(completeLines(output)) ? done(output) : stillWaiting(output.slice(-500)),
        );
      } finally {
        stream.destroy();
      }
    },
  };
  return guest;
}

/** Returns the output without its last line, which may be incomplete. */
export function completeLines(output: string): string {
  return output.slice(0, output.lastIndexOf('\n') + 1);
}

type PollResult<T> = { readonly is: 'done'; readonly value: T } | { readonly is: 'waiting'; readonly seen: unknown };

const done = <T>(value: T): PollResult<T> => ({ is: 'done', value });
const stillWaiting = (seen: unknown): PollResult<never> => ({ is: 'waiting', seen });

async function pollUntilDone<T>(what: string, poll: () => Promise<PollResult<T>>): Promise<T> {
  const deadline = performance.now() + PATIENCE_MS;
  for (;;) {
    const result = await poll();
    if (result.is === 'done') return result.value;
    if (performance.now() > deadline)
      throw new Error(`Timed out waiting for ${what}; last seen: ${JSON.stringify(result.seen)}`);
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
  }
}

/** Reads the console log, as `kubectl logs` does. */
async function readConsole(plane: ConnectedPlane, name: string): Promise<string> {
  const vmi = await plane.client.get(VIRTUAL_MACHINE_INSTANCES, { namespace: NAMESPACE, name });
  const labelSelector = `${CREATED_BY_LABEL}=${vmi.metadata.uid}`;
  const pods = await plane.client.list(PODS, { namespace: NAMESPACE, labelSelector });
  // After a migration, the instance has two pods for a moment.
  const pod = pods.items.find(({ spec }) => spec.nodeName === vmi.status?.nodeName) ?? pods.items[0];
  if (pod === undefined) throw new Error(`VMI ${name} has no pod`);
  const query = `container=${CONSOLE_CONTAINER}&insecureSkipTLSVerifyBackend=${plane.hasOtherAuthority === true}`;
  const path = `/api/v1/namespaces/${NAMESPACE}/pods/${pod.metadata.name}/log?${query}`;
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

async function openConsole(plane: ConnectedPlane, name: string): Promise<Duplex> {
  const path = `/apis/subresources.kubevirt.io/v1/namespaces/${NAMESPACE}/virtualmachineinstances/${name}/console`;
  const { incoming, stream } = await requestWebSocket({
    url: `${plane.server.access().server}${path}`,
    protocols: ['plain.kubevirt.io'],
    agent: new Agent(tlsOf(plane)),
    timeoutMs: PATIENCE_MS,
    clock: systemClock,
  });
  if (stream !== undefined) return stream;
  throw new Error(`the console answered ${incoming.statusCode}: ${await readText(incoming)}`);
}

function tlsOf(plane: ConnectedPlane) {
  const { certificateAuthority: ca, clientCertificate: cert, clientKey: key } = plane.server.access();
  return { ca, cert, key, agent: false as const };
}

function findPodProgram(pid: number): PodProgram[] {
  try {
    const variables = readFileSync(`/proc/${pid}/environ`, 'latin1').split('\0');
    const tokenFile = variables.find((variable) => variable.startsWith(TOKEN_FILE))?.slice(TOKEN_FILE.length);
    const parent = /^PPid:\s*([0-9]+)$/m.exec(readFileSync(`/proc/${pid}/status`, 'latin1'))?.[1];
    return tokenFile === undefined ? [] : [{ pid, parent: Number(parent), tokenFile }];
  } catch {
    return []; // The process ended meanwhile.
  }
}

/** Releases what killed guests held: the file systems of their state and the loop devices below them. */
function releaseMountsBelow(dir: string): void {
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
