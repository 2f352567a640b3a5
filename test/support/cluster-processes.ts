/**
 * An API server and our parts on it, each a process with its own identity, over HTTPS. The API server is the embedded
 * engine, or an existing cluster (SELFSAME_CLUSTER_KUBECONFIG, an administrator's; its own nodes are not used).
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { networkInterfaces } from 'node:os';
import { dirname, join } from 'node:path';
import type { Client } from '#client/client.ts';
import { Informer } from '#client/informer.ts';
import { loadKubeconfig, type ClusterAccess } from '#client/kubeconfig.ts';
import { createClient } from '#client/rest-client.ts';
import { PODS } from '#kube/core-kinds.ts';
import type { KubeObject, ResourceType } from '#kube/meta.ts';
import { systemClock } from '#lib/clock.ts';
import { silentLog } from '#lib/log.ts';
import { startServer, createTemporaryDir, openTransport, type Scope } from '#test/support/server-process.ts';

const ROOT = join(import.meta.dirname, '..', '..');
/** The kubeconfig of an administrator of an existing cluster on which Selfsame may be installed. */
export const REAL_CLUSTER = process.env['SELFSAME_CLUSTER_KUBECONFIG'];
const KILLED_MS = 8000;

export interface ChildProcess {
  readonly pid: number;
  /** Resolves when the process has printed this line; rejects if it ends before. */
  awaitLine(line: string): Promise<void>;
  kill(signal: NodeJS.Signals): Promise<void>;
  output(): string;
}

/**
 * Starts the program with these arguments. It is killed at the end of the test at the latest. `wrapper` is a command that
 * runs the program that follows it, such as `nsenter`, in the same process.
 */
export function launchProgram(
  t: Scope,
  args: readonly string[],
  { wrapper = [] }: { wrapper?: readonly string[] } = {},
): ChildProcess {
  const program = ['--disable-warning=ExperimentalWarning', join(ROOT, 'src/main.ts'), ...args];
  const [command = '', ...words] = [...wrapper, process.execPath, ...program];
  const child = spawn(command, words, {
    env: { ...process.env, NODE_COMPILE_CACHE: join(ROOT, '.cache/node-compile'), SELFSAME_LOG_LEVEL: 'warn' },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const exited = once(child, 'close');
  t.after(async () => {
    child.kill('SIGTERM');
    const late = setTimeout(() => child.kill('SIGKILL'), KILLED_MS);
    await exited;
    clearTimeout(late);
  });
  let [stdout, stderr] = ['', ''];
  child.stderr.on('data', (chunk) => (stderr += String(chunk)));
  child.stdout.on('data', (chunk) => (stdout += String(chunk)));
  return {
    pid: child.pid!,
    output: () => stdout + stderr,
    awaitLine: (line) =>
      new Promise((resolve, reject) => {
        const resolveIfPrinted = () => stdout.split('\n').includes(line) && resolve();
        child.stdout.on('data', resolveIfPrinted);
        child.once('close', () => reject(new Error(`the process ended before it printed ${line}: ${stdout}${stderr}`)));
        resolveIfPrinted();
      }),
    async kill(signal) {
      child.kill(signal);
      await exited;
    },
  };
}

/** Runs the program to its end and returns its output. Throws if it fails. */
export async function runProgram(t: Scope, args: readonly string[]): Promise<string> {
  const child = spawn(process.execPath, ['--disable-warning=ExperimentalWarning', join(ROOT, 'src/main.ts'), ...args], {
    env: { ...process.env, NODE_COMPILE_CACHE: join(ROOT, '.cache/node-compile') },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  t.after(() => child.kill('SIGKILL'));
  let [stdout, stderr] = ['', ''];
  child.stderr.on('data', (chunk) => (stderr += String(chunk)));
  child.stdout.on('data', (chunk) => (stdout += String(chunk)));
  const [code] = (await once(child, 'close')) as [number | null];
  if (code !== 0) throw new Error(`Cannot run selfsame ${args.join(' ')}: exit code ${code}: ${stdout}${stderr}`);
  return stdout;
}

export interface Cluster {
  readonly dir: string;
  readonly kubeconfig: string;
  readonly admin: Client;
  /** Runs `selfsame join` and returns the path of the kubeconfig that it wrote. */
  join(as: 'controllers' | 'node', name?: string): Promise<string>;
  clientOf(kubeconfig: string): Client;
  startControllers(flags?: readonly string[]): Promise<ChildProcess>;
  startNode(name: string): Promise<ChildProcess>;
  /** Starts an informer of all objects of the kind. */
  startInformer<T extends KubeObject>(type: ResourceType<T>, namespace?: string): Promise<Informer<T>>;
}

/** Starts a cluster on which Selfsame is installed, but none of its processes runs. */
export async function startCluster(t: Scope): Promise<Cluster> {
  const dir = createTemporaryDir(t);
  const engineDir = join(dir, 'engine');
  if (REAL_CLUSTER === undefined) await startServer(t, { dataDir: engineDir });
  const kubeconfig = REAL_CLUSTER ?? join(engineDir, 'kubeconfig');
  const clientOf = (file: string) => createClient(openTransport(t, loadAccess(file)));
  const admin = clientOf(kubeconfig);
  await runProgram(t, ['install', '--apply', '--kubeconfig', kubeconfig]);
  const stopping = new AbortController();
  t.after(() => stopping.abort());
  const watched: Cluster['startInformer'] = async (type, namespace) => {
    const where = namespace === undefined ? {} : { namespace };
    const informer = new Informer({ reader: admin, type, clock: systemClock, log: silentLog, ...where });
    void informer.start({ signal: stopping.signal });
    await informer.waitForSync();
    return informer;
  };
  const joinCluster: Cluster['join'] = async (as, name = 'controllers') => {
    const out = join(dir, `${name}.kubeconfig`);
    const signerFlags =
      as === 'node' && REAL_CLUSTER === undefined ? ['--engine-data-dir', engineDir] : ['--kubeconfig', kubeconfig];
    await runProgram(t, ['join', '--as', as, '--name', name, '--out', out, ...signerFlags]);
    return out;
  };
  return {
    ...{ dir, kubeconfig, admin, clientOf, startInformer: watched, join: joinCluster },
    async startControllers(flags = []) {
      const own = await joinCluster('controllers');
      const where = ['--listen-address', ADDRESS, '--advertise-address', ADDRESS, '--webhook-port', '0'];
      const started = launchProgram(t, ['controllers', '--kubeconfig', own, ...where, ...flags]);
      await started.awaitLine('ready');
      return started;
    },
    async startNode(name) {
      const own = await joinCluster('node', name);
      const dirs = ['--data-dir', join(dir, name), '--shared-dir', join(dir, 'shared')];
      const node = launchProgram(t, [
        'node',
        '--kubeconfig',
        own,
        '--name',
        name,
        ...dirs,
        '--hypervisor',
        'fake',
        '--address',
        ADDRESS,
      ]);
      await node.awaitLine('ready');
      return node;
    },
  };
}

/** Existing clusters do not accept a loopback address. */
export const ADDRESS =
  REAL_CLUSTER === undefined
    ? '127.0.0.1'
    : (Object.values(networkInterfaces())
        .flatMap((all) => all ?? [])
        .find(({ internal, family }) => !internal && family === 'IPv4')?.address ?? '127.0.0.1');

export function loadAccess(file: string): ClusterAccess {
  const readFile = (path: string) => readFileSync(path, 'utf8');
  return loadKubeconfig(readFile(file), { directory: dirname(file), readFile });
}

/** Binds launcher pods to these nodes in turn, if the cluster has no scheduler (SELFSAME_CLUSTER_SCHEDULER=none). */
export async function bindPodsWithoutScheduler(
  cluster: Cluster,
  namespace: string,
  nodes: readonly string[],
): Promise<void> {
  if (process.env['SELFSAME_CLUSTER_SCHEDULER'] !== 'none') return;
  const pods = await cluster.startInformer(PODS, namespace);
  const bound = new Set<string>();
  const bindPending = () => {
    for (const { metadata, spec } of pods.list()) {
      if (spec.nodeName || bound.has(metadata.uid)) continue;
      bound.add(metadata.uid);
      // Not the node that already has a pod of the same instance: a migration needs another one.
      const sibling = pods.list().find(({ metadata: other, spec: { nodeName } }) => {
        return nodeName && other.labels?.['kubevirt.io/created-by'] === metadata.labels?.['kubevirt.io/created-by'];
      });
      const target =
        nodes.filter((node) => node !== sibling?.spec.nodeName)[bound.size % nodes.length] ??
        nodes.find((node) => node !== sibling?.spec.nodeName);
      const binding = {
        apiVersion: 'v1',
        kind: 'Binding',
        metadata: { name: metadata.name, namespace },
        target: { apiVersion: 'v1', kind: 'Node', name: target },
      };
      void cluster.admin
        .create(PODS as ResourceType, binding as KubeObject, { subresource: 'binding' })
        .catch(() => undefined);
    }
  };
  pods.onChange(bindPending);
  bindPending();
}
