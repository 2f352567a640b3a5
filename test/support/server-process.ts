/** The real program as a child process: starts it and waits for `ready`, stops or kills it, and collects its output. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createHttpTransport, type HttpTransport } from '#client/http.ts';
import { loadKubeconfig, type ClusterAccess } from '#client/kubeconfig.ts';
import { systemClock } from '#lib/clock.ts';
import { killProcessesBelow } from '#test/support/processes-below.ts';

const ROOT = join(import.meta.dirname, '..', '..');

/** A test, or anything else that ends. */
export interface Scope {
  after(fn: () => unknown): void;
}

export interface ServerOptions {
  readonly dataDir: string;
  /** The port; 0, the default, selects a free one. */
  readonly port?: number;
  readonly tokenAuthFile?: string;
  /** The command; `engine` by default. `up` with its flags adds VMs. */
  readonly command?: readonly string[];
  /** Variables in addition to those of the test. */
  readonly env?: Readonly<Record<string, string>>;
}

export interface ProcessExit {
  /** Null if a signal ended the process. */
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface ServerProcess {
  readonly pid: number;
  /** Resolves when the process prints `ready`; rejects if it ends before. */
  readonly ready: Promise<void>;
  /** Resolves when the process has ended, for any reason. */
  readonly exited: Promise<ProcessExit>;
  /** Returns access from the kubeconfig of the server, which must be ready. */
  access(): ClusterAccess;
  /** Returns what the process has written to standard error so far: its log. */
  log(): string;
  kill(signal: NodeJS.Signals): Promise<ProcessExit>;
}

/** Kills each server that runs, by its data directory. */
const running = new Map<string, () => Promise<void>>();

/** Starts the program and kills it, with the agents of its nodes, at the end of the test at the latest. */
export function spawnServer(t: Scope, options: ServerOptions): ServerProcess {
  const { dataDir, port = 0, tokenAuthFile, command = ['engine'], env = {} } = options;
  const args = [...command, '--data-dir', dataDir, '--port', String(port), '--log-level', 'warn'];
  if (tokenAuthFile !== undefined) args.push('--token-auth-file', tokenAuthFile);
  const child = spawn(process.execPath, ['--disable-warning=ExperimentalWarning', join(ROOT, 'src/main.ts'), ...args], {
    env: { ...process.env, ...env, NODE_COMPILE_CACHE: join(ROOT, '.cache/node-compile') },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const end = () => {
    child.kill('SIGKILL');
    // The agents of nodes have sessions of their own, and outlive the server.
    if (command[0] === 'up') killProcessesBelow(join(dataDir, 'nodes'));
  };
  t.after(end);
  process.once('exit', end);
  const gone = once(child, 'exit').then(() => void running.delete(dataDir));
  running.set(dataDir, async () => {
    end();
    await gone;
  });

  let [stdout, stderr] = ['', ''];
  const ready = new Promise<void>((resolve, reject) => {
    child.stdout.on('data', (chunk) => {
      stdout += String(chunk);
      if (/^ready$/m.test(stdout)) resolve();
    });
    child.once('close', () => reject(new Error(`the server ended before it was ready: ${stdout}${stderr}`)));
  });
  // A caller that only waits for the end does not handle this rejection.
  ready.catch(() => {});
  child.stderr.on('data', (chunk) => (stderr += String(chunk)));
  const exited = once(child, 'close').then(([code, signal]): ProcessExit => {
    process.off('exit', end);
    return { code: code as number | null, signal: signal as NodeJS.Signals | null, stdout, stderr };
  });
  return {
    pid: child.pid!,
    ready,
    exited,
    access: () => loadServerAccess(dataDir),
    log: () => stderr,
    kill(signal) {
      child.kill(signal);
      return exited;
    },
  };
}

export async function startServer(t: Scope, options: ServerOptions): Promise<ServerProcess> {
  const server = spawnServer(t, options);
  await server.ready;
  return server;
}

export function loadServerAccess(dataDir: string): ClusterAccess {
  const readFile = (path: string) => readFileSync(path, 'utf8');
  return loadKubeconfig(readFile(join(dataDir, 'kubeconfig')), { readFile });
}

/** Opens a transport that is closed at the end of the test. */
export function openTransport(t: Scope, access: ClusterAccess): HttpTransport {
  const transport = createHttpTransport(access, { userAgent: 'selfsame-test', clock: systemClock });
  t.after(() => transport.close());
  return transport;
}

/** Creates a directory that is removed at the end of the test, after the servers that write to it have been killed. */
export function createTemporaryDir(t: Scope): string {
  const dir = mkdtempSync(join(tmpdir(), 'selfsame-test-'));
  t.after(async () => {
    for (const [dataDir, kill] of running) if (dataDir.startsWith(dir)) await kill();
    rmSync(dir, { recursive: true, force: true, maxRetries: 10 });
  });
  return dir;
}
