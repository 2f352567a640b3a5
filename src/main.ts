/**
 * The `selfsame` program: reads argv and env (through config.ts), takes signals, prints for people and sets the exit
 * code. 0: done or stopped as asked; 1: could not do it; 2: misused.
 *
 *   config ─► lock of the data directory ─► engine ─► "ready" ─► SIGINT or SIGTERM ─► stop ─► exit 0
 *                                                                       └─ a second one ─► exit at once
 *
 * Standard output is for people and scripts (the last line of a start is `ready`), standard error for logs.
 */
import { readFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { install, joinCluster, nodeOfCluster, runControllers, uninstall } from './cluster-commands.ts';
import { parseCommandLine } from './config.ts';
import type { AuditReaderOptions, ControllersOptions, DoctorOptions, EngineOptions, HostOptions } from './config.ts';
import type { NodeOptions } from './config.ts';
import type { TourOptions, TransitionProgramOptions, UpOptions } from './config.ts';
import type { AuditOptions } from '#engine/audit/audit-options.ts';
import { systemClock, type Clock } from '#lib/clock.ts';
import { DataDirError, acquireDataDir } from '#lib/data-dir-lock.ts';
import { createLog, type Log } from '#lib/log.ts';
import { VERSION } from '#lib/version.ts';

const OK = 0;
const FAILED = 1;
const MISUSED = 2;
const SIGNAL_NUMBERS = { SIGINT: 2, SIGTERM: 15 } as const;
/** Under `npm start` one Ctrl-C arrives twice: from the terminal and from npm. */
const SAME_SIGNAL_MS = 500;
/** A stop that takes longer has gone wrong; what was acknowledged is on disk anyway. */
const STOP_LIMIT_MS = 20_000;
const ALIVE_MS = 60_000;
const PROJECT_ROOT = join(import.meta.dirname, '..');
/** How this very program is started again, for nodes and Jobs. */
const PROGRAM = { file: process.execPath, args: [...process.execArgv, join(PROJECT_ROOT, 'src/main.ts')] };
/** Errors whose message says all to the operator; others are our own mistakes and keep their stack. */
const PLAIN_ERRORS = new Set([
  'StoreDamagedError',
  'StoreUnavailableError',
  'PkiError',
  'TokenFileError',
  'KubeconfigError',
  'JoinError',
  'CommandError',
  'ApiError',
  'TransportError',
]);

async function main(): Promise<number> {
  const config = parseCommandLine(process.argv.slice(2), process.env);
  if ('usageError' in config) {
    process.stderr.write(`selfsame: ${config.usageError}\nTry: selfsame help\n`);
    return MISUSED;
  }
  switch (config.command) {
    case 'help':
      process.stdout.write(config.text);
      return OK;
    case 'version':
      process.stdout.write(`selfsame ${VERSION} (node ${process.versions.node})\n`);
      return OK;
    case 'up':
      return await up(config.options);
    case 'engine':
      return await engine(config.options);
    case 'node':
      return await node(config.options);
    case 'install':
      return await install(config.options, process.env);
    case 'uninstall':
      return await uninstall(config.options, process.env);
    case 'join':
      return await joinCluster(config.options, process.env);
    case 'controllers':
      return await controllers(config.options);
    case 'host':
      return await host(config.options);
    case 'audit':
      return await audit(config.options);
    case 'tour':
      return await tour(config.options);
    case 'doctor':
      return await doctor(config.options);
    case 'update-machine-types':
      return await updateMachineTypes(config.options);
  }
}

async function up(options: UpOptions): Promise<number> {
  return await serve(options, async (parts) => {
    // Loaded only here, so that help and version are quick.
    const { startPlane } = await import('#plane/embedded/plane.ts');
    const { hypervisor, accel, logLevel, nodes } = options;
    const nodeFlags = ['--hypervisor', hypervisor, '--accel', accel, '--log-level', logLevel];
    const plane = await startPlane({ ...parts, nodes, program: { ...PROGRAM, nodeFlags } });
    return { stop: plane.stop, text: welcome(plane, nodes) };
  });
}

async function engine(options: EngineOptions): Promise<number> {
  return await serve(options, async (parts) => {
    const { startEngine } = await import('#engine/engine.ts');
    const started = await startEngine(parts);
    return { stop: started.stop, text: engineWelcome(started) };
  });
}

/** What `up` and `engine` share: the data directory is theirs from before the start until after the stop. */
async function serve(
  options: EngineOptions,
  start: (parts: ServerParts) => Promise<{ stop(): Promise<void>; text: string }>,
): Promise<number> {
  const dataDir = resolve(options.dataDir);
  const stopped = stopSignal();
  const lock = acquireDataDir(dataDir);
  try {
    const { host, port, tokenAuthFile } = options;
    const tokens = tokenAuthFile === undefined ? undefined : resolve(tokenAuthFile);
    const kept = auditOptions(options);
    const log = createLog(options.logLevel);
    const parts = { dataDir, host, port, tokenAuthFile: tokens, audit: kept, log, clock: systemClock };
    const { stop, text } = await start(parts);
    process.stdout.write(text);
    await stopped;
    await stopInTime(stop);
  } catch (error) {
    throw listenError(error, options) ?? error;
  } finally {
    lock.release();
  }
  process.stdout.write('stopped\n');
  return OK;
}

interface ServerParts {
  readonly dataDir: string;
  readonly host: string;
  readonly port: number;
  readonly tokenAuthFile: string | undefined;
  readonly audit: AuditOptions;
  readonly log: Log;
  readonly clock: Clock;
}

async function node(options: NodeOptions): Promise<number> {
  const nodeDir = resolve(options.dataDir);
  const sharedDir = resolve(options.sharedDir);
  const stopped = stopSignal();
  const lock = acquireDataDir(nodeDir);
  try {
    // Whoever looks for the processes of a data directory finds the agent there, too.
    process.chdir(nodeDir);
    const { startNodeProgram } = await import('#plane/node-program.ts');
    const { name, hypervisor, accel, logLevel } = options;
    const leaving = new AbortController();
    void stopped.then(() => leaving.abort());
    const program = await startNodeProgram({
      ...{ name, nodeDir, sharedDir, hypervisor, accel },
      cluster: nodeOfCluster(options),
      guestDir: join(PROJECT_ROOT, '.cache/guest'),
      isRoot: process.getuid?.() === 0,
      program: [PROGRAM.file, ...PROGRAM.args],
      clock: systemClock,
      log: createLog(logLevel),
      signal: leaving.signal,
    }).catch((error: unknown) => {
      if (!leaving.signal.aborted) throw error;
    });
    if (program === undefined) return OK;
    if (process.send === undefined) process.stdout.write('ready\n');
    else process.send('ready', () => process.disconnect?.());
    await stopped;
    await stopInTime(program.stop);
  } finally {
    lock.release();
  }
  return OK;
}

async function controllers(options: ControllersOptions): Promise<number> {
  const leaving = new AbortController();
  void stopSignal().then(() => leaving.abort());
  try {
    return await runControllers(options, process.env, leaving.signal);
  } catch (error) {
    const { listenAddress: address, webhookPort: port } = options;
    throw listenError(error, { host: address, port }) ?? error;
  }
}

async function host({ dataDir, node: name, words }: HostOptions): Promise<number> {
  const { runHost } = await import('#cli/host/run-host.ts');
  const { stdout, stderr } = process;
  const readFile = (path: string) => readFileSync(path === '-' ? 0 : path, 'utf8');
  return await runHost({ dataDir: resolve(dataDir), node: name, words, stdout, stderr, readFile });
}

function auditOptions({ audit: level, auditLogMaxSize, auditLogMaxBackup }: EngineOptions): AuditOptions {
  return { level, maxBytes: auditLogMaxSize * 1024 * 1024, maxRotated: auditLogMaxBackup };
}

async function tour({ kubeconfig, dataDir }: TourOptions): Promise<number> {
  const [{ runTour, tourFault }, { loadKubeconfig }, { runningIn }] = await Promise.all([
    import('#cli/tour/run-tour.ts'),
    import('#client/kubeconfig.ts'),
    import('#cli/tour/running-plane.ts'),
  ]);
  const readFile = (path: string) => readFileSync(path, 'utf8');
  const loadAccess = (path: string) => loadKubeconfig(readFile(path), { directory: dirname(resolve(path)), readFile });
  const found = kubeconfig ?? runningIn(resolve(dataDir));
  const leaving = new AbortController();
  void stopSignal().then(() => leaving.abort(new Error('stopped by a signal')));
  try {
    const isSame = await runTour({
      access: found === undefined ? undefined : loadAccess(found),
      program: [PROGRAM.file, ...PROGRAM.args],
      loadAccess,
      readFile,
      screen: process.stdout,
      clock: systemClock,
      signal: leaving.signal,
    });
    return isSame ? OK : FAILED;
  } catch (error) {
    if (leaving.signal.aborted) return FAILED;
    process.stderr.write(`${tourFault(error)}\n`);
    return FAILED;
  }
}

async function doctor({ dataDir, host, port, output }: DoctorOptions): Promise<number> {
  const [{ examine }, { thisMachine }, { examinationText, isHealthy }] = await Promise.all([
    import('#doctor/doctor.ts'),
    import('#doctor/this-machine.ts'),
    import('#doctor/finding.ts'),
  ]);
  const place = { dataDir: resolve(dataDir), host, port, guestDir: join(PROJECT_ROOT, '.cache/guest') };
  const examination = await examine(thisMachine, place);
  const text = output === 'json' ? `${JSON.stringify(examination, undefined, 2)}\n` : examinationText(examination);
  process.stdout.write(text);
  return isHealthy(examination) ? OK : FAILED;
}

async function audit({ dataDir, words }: AuditReaderOptions): Promise<number> {
  const { runAudit } = await import('#cli/audit/run-audit.ts');
  const { stdout, stderr } = process;
  const leaving = new AbortController();
  // Who has seen enough closes the pipe.
  stdout.on('error', () => leaving.abort());
  const alive = setInterval(() => {}, ALIVE_MS);
  try {
    return await runAudit({ dataDir, words, stdout, stderr, clock: systemClock, signal: leaving.signal });
  } finally {
    clearInterval(alive);
  }
}

async function updateMachineTypes({ logLevel, env }: TransitionProgramOptions): Promise<number> {
  const { runTransitionProgram } = await import('#transition/program.ts');
  const leaving = new AbortController();
  void stopSignal().then(() => leaving.abort(new OperatorError('stopped before the end; the next run goes on')));
  const readFile = (path: string) => readFileSync(path, 'utf8');
  const { signal } = leaving;
  // Timers of the clock keep no process alive, and while the server is away there is nothing else.
  const alive = setInterval(() => {}, ALIVE_MS);
  try {
    const outcome = await runTransitionProgram({ env, readFile, clock: systemClock, log: createLog(logLevel), signal });
    if (outcome === 'done') return OK;
    throw new OperatorError(outcome.failed);
  } finally {
    clearInterval(alive);
  }
}

async function stopInTime(stop: () => Promise<void>): Promise<void> {
  systemClock.after(STOP_LIMIT_MS, () => {
    process.stderr.write('selfsame: Cannot stop in time; leaving now\n');
    process.exit(FAILED);
  });
  await stop();
}

/** Resolves at the first signal, also one that comes while the engine still starts; a second ends the process. */
function stopSignal(): Promise<void> {
  return new Promise((signalled) => {
    let firstAt: number | undefined;
    for (const signal of ['SIGINT', 'SIGTERM'] as const) {
      process.on(signal, () => {
        const now = systemClock.now();
        if (firstAt !== undefined && now - firstAt > SAME_SIGNAL_MS) process.exit(128 + SIGNAL_NUMBERS[signal]);
        if (firstAt !== undefined) return;
        firstAt = now;
        process.stdout.write('stopping; once more to leave at once\n');
        signalled();
      });
    }
  });
}

interface Serving {
  readonly url: string;
  readonly kubeconfigPath: string;
}

function welcome(
  { url, kubeconfigPath, lateNodes }: Serving & { lateNodes: readonly string[] },
  nodes: number,
): string {
  const late = lateNodes.length === 0 ? [] : [`Still starting: ${lateNodes.join(', ')}`, ''];
  return [
    `selfsame ${VERSION} serves ${url} with ${nodes === 1 ? 'one node' : `${nodes} nodes`}`,
    '',
    ...late,
    'The kubeconfig of its administrator:',
    `  export KUBECONFIG=${shellWord(kubeconfigPath)}`,
    'Then try:',
    '  kubectl apply -f examples/vm.yaml',
    '  kubectl get vms,vmis,pods',
    '  ./virtctl console hello        # Ctrl-] leaves',
    '  ./virtctl restart hello',
    '  kubectl get vmid hello -o yaml',
    '',
    'ready',
    '',
  ].join('\n');
}

function engineWelcome({ url, kubeconfigPath }: Serving): string {
  return [
    `selfsame ${VERSION} serves ${url}`,
    '',
    'The kubeconfig of its administrator:',
    `  export KUBECONFIG=${shellWord(kubeconfigPath)}`,
    'Then try:',
    '  kubectl get namespaces',
    '  kubectl api-resources',
    '',
    'ready',
    '',
  ].join('\n');
}

function shellWord(text: string): string {
  return /^[\w./:@+-]+$/.test(text) ? text : `'${text.replaceAll("'", String.raw`'\''`)}'`;
}

/** What the system says about an address, in words that help. */
function listenError(error: unknown, { host, port }: Pick<EngineOptions, 'host' | 'port'>): Error | undefined {
  if (!(error instanceof Error)) return undefined;
  const { code, syscall }: NodeJS.ErrnoException = error;
  if (syscall !== 'listen' && syscall !== 'bind') return undefined;
  const where = `Cannot listen on ${host.includes(':') ? `[${host}]` : host}:${port}`;
  switch (code) {
    case 'EADDRINUSE':
      return new OperatorError(`${where}: the port is in use by another program; choose another with --port`);
    case 'EADDRNOTAVAIL':
      return new OperatorError(`${where}: this machine has no such address; choose another with --host`);
    case 'EACCES':
      return new OperatorError(`${where}: this user may not use that port; choose another with --port`);
    default:
      return undefined;
  }
}

class OperatorError extends Error {
  override name = 'OperatorError';
}

function describe(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const plain = error instanceof OperatorError || error instanceof DataDirError || PLAIN_ERRORS.has(error.name);
  return plain ? error.message.replaceAll('\n', ' ') : (error.stack ?? error.message);
}

// A reader that has seen enough and closes the pipe must not end the server.
process.stdout.on('error', () => {});

try {
  process.exitCode = await main();
} catch (error) {
  process.stderr.write(`selfsame: ${describe(error)}\n`);
  process.exitCode = FAILED;
}
