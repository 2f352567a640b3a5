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
import { networkInterfaces } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import type { Client } from '#client/client.ts';
import type { ClusterAccess } from '#client/kubeconfig.ts';
import { parseCommandLine } from './config.ts';
import type { AuditReaderOptions, BackupOptions, ControllersOptions, DoctorOptions, EngineOptions } from './config.ts';
import type { HostOptions, InstallOptions, JoinOptions, NodeOptions, RestoreBackupOptions } from './config.ts';
import type { TourOptions, TransitionProgramOptions, UninstallOptions, UpOptions } from './config.ts';
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
const GUEST_DIR = join(PROJECT_ROOT, '.cache/guest');
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
      return await install(config.options);
    case 'uninstall':
      return await uninstall(config.options);
    case 'join':
      return await joinCluster(config.options);
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
    case 'backup':
      return await backup(config.options);
    case 'restore-backup':
      return await restoreBackup(config.options);
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
      guestDir: GUEST_DIR,
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

function nodeOfCluster({ kubeconfig, address, port }: NodeOptions) {
  if (kubeconfig === undefined) return undefined;
  return { kubeconfig: resolve(kubeconfig), address: address ?? firstAddress(), port };
}

async function install({ kubeconfig, apply, dryRun }: InstallOptions): Promise<number> {
  const { applyInstallation, installYaml } = await import('#operator/install.ts');
  if (!apply) {
    process.stdout.write(installYaml());
    return OK;
  }
  return await withCluster(kubeconfig, async ({ client }) => {
    const say = (line: string) => void process.stdout.write(`${line}\n`);
    const changed = await applyInstallation({ client, clock: systemClock, dryRun, say });
    say(changed === 0 ? 'nothing changed' : `${changed} objects changed`);
    return OK;
  });
}

async function uninstall({ kubeconfig }: UninstallOptions): Promise<number> {
  const { uninstallation } = await import('#operator/uninstall.ts');
  return await withCluster(kubeconfig, async ({ client }) => {
    const outcome = await uninstallation(client);
    if ('refused' in outcome) throw new OperatorError(outcome.refused);
    process.stdout.write(`${outcome.commands.join('\n')}\n`);
    return OK;
  });
}

async function joinCluster(options: JoinOptions): Promise<number> {
  const { as, name, engineDataDir } = options;
  const out = resolve(options.out);
  if (as === 'node' && engineDataDir !== undefined) {
    const { issueNodeKubeconfig } = await import('#plane/embedded/admit-node.ts');
    await issueNodeKubeconfig(resolve(engineDataDir), name, out);
  } else {
    const { joinControllers, joinNode } = await import('#plane/cluster/join.ts');
    await withCluster(options.kubeconfig, async ({ client, access }) => {
      const parts = { client, access, out, clock: systemClock };
      await (as === 'node' ? joinNode(name, parts) : joinControllers(parts));
      return OK;
    });
  }
  process.stdout.write(`${out}\n`);
  return OK;
}

async function controllers(options: ControllersOptions): Promise<number> {
  const { runControllersProgram } = await import('#plane/cluster/controllers-program.ts');
  const { webhookPort: port, listenAddress, certificateLifetime: certificateMs, caLifetime: authorityMs } = options;
  if (authorityMs < 4 * certificateMs) {
    throw new OperatorError('--ca-lifetime must be at least four times --certificate-lifetime');
  }
  const leaving = new AbortController();
  void stopSignal().then(() => leaving.abort());
  const alive = setInterval(() => {}, ALIVE_MS);
  try {
    await runControllersProgram({
      access: await clusterAccess(options.kubeconfig),
      ...{ host: listenAddress, port, advertiseAddress: options.advertiseAddress ?? firstAddress() },
      lifetimes: { certificateMs, authorityMs },
      clock: systemClock,
      log: createLog(options.logLevel),
      signal: leaving.signal,
      onReady: () => process.stdout.write('ready\n'),
      onLeading: () => process.stdout.write('leading\n'),
    });
  } catch (error) {
    throw listenError(error, { host: listenAddress, port }) ?? error;
  } finally {
    clearInterval(alive);
  }
  process.stdout.write('stopped\n');
  return OK;
}

/** From a file, or as in any pod. */
async function clusterAccess(kubeconfig: string | undefined): Promise<ClusterAccess> {
  const { inClusterAccess, loadKubeconfig } = await import('#client/kubeconfig.ts');
  const readFile = (path: string) => readFileSync(path, 'utf8');
  if (kubeconfig !== undefined)
    return loadKubeconfig(readFile(kubeconfig), { directory: dirname(resolve(kubeconfig)), readFile });
  const { KUBERNETES_SERVICE_HOST: host, KUBERNETES_SERVICE_PORT: port } = process.env;
  if (!host || !port) throw new OperatorError('--kubeconfig is missing, and this is no pod of a cluster');
  return inClusterAccess(readFile, { host, port });
}

async function withCluster(
  kubeconfig: string | undefined,
  use: (cluster: { client: Client; access: ClusterAccess }) => Promise<number>,
): Promise<number> {
  const [{ createHttpTransport }, { createClient }] = await Promise.all([
    import('#client/http.ts'),
    import('#client/rest-client.ts'),
  ]);
  const access = await clusterAccess(kubeconfig);
  const transport = createHttpTransport(access, { userAgent: 'selfsame-install', clock: systemClock });
  const alive = setInterval(() => {}, ALIVE_MS);
  try {
    return await use({ client: createClient(transport), access });
  } finally {
    clearInterval(alive);
    transport.close();
  }
}

/** Of this machine, as others reach it. */
function firstAddress(): string {
  const all = Object.values(networkInterfaces()).flatMap((one) => one ?? []);
  return all.find(({ internal, family }) => !internal && family === 'IPv4')?.address ?? '127.0.0.1';
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
  if (found === undefined) {
    const { tourObstacles } = await import('./doctor.ts');
    const obstacles = await tourObstacles({
      dataDir: resolve(dataDir),
      host: '127.0.0.1',
      port: 0,
      guestDir: GUEST_DIR,
    });
    if (obstacles !== '') {
      process.stderr.write(obstacles);
      return FAILED;
    }
  }
  const leaving = new AbortController();
  // A terminal that goes away is no reason to leave guests behind.
  process.once('SIGHUP', () => process.kill(process.pid, 'SIGTERM'));
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

async function doctor({ dataDir, host, port, output, bundle }: DoctorOptions): Promise<number> {
  const { examinationOf, runDoctor } = await import('./doctor.ts');
  const place = { dataDir: resolve(dataDir), host, port, guestDir: GUEST_DIR };
  const examination = await examinationOf(place);
  const { stdout, stderr } = process;
  return await runDoctor({ examination, place, output, bundle, stdout, stderr, clock: systemClock });
}

async function backup({ dataDir, to }: BackupOptions): Promise<number> {
  const { makeBackup } = await import('#plane/backup/make-backup.ts');
  const now = new Date(systemClock.now());
  const made = makeBackup({ dataDir: resolve(dataDir), to: resolve(to), now });
  const { bytes, from } = await made.catch((error: unknown) => {
    throw backupFault(`Cannot back up ${dataDir}`, error);
  });
  process.stdout.write(`${to}: ${bytes} bytes, from the ${from}. It holds keys and Secrets: keep it as such.\n`);
  return OK;
}

async function restoreBackup({ dataDir, from }: RestoreBackupOptions): Promise<number> {
  const { restoreBackup: restore } = await import('#plane/backup/restore-backup.ts');
  const now = new Date(systemClock.now());
  const restoring = restore({ dataDir: resolve(dataDir), from: resolve(from), now });
  const { createdAt, revision, movedTo } = await restoring.catch((error: unknown) => {
    throw backupFault(`Cannot restore ${from}`, error);
  });
  process.stdout.write(`${dataDir} is what it was at ${createdAt}, revision ${revision}\n`);
  if (movedTo !== undefined) process.stdout.write(`What was there before is in ${movedTo}\n`);
  return OK;
}

function backupFault(what: string, error: unknown): unknown {
  const isPlain = error instanceof Error && (error.name === 'BackupError' || 'code' in error);
  return isPlain ? new OperatorError(`${what}: ${error.message}`, { cause: error }) : error;
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
