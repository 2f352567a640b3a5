/** Commands that inspect or back up a plane or a machine: host, audit, tour, doctor, backups and Jobs. */
import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { systemClock } from '#lib/clock.ts';
import { CommandError } from '#lib/command-line/command-error.ts';
import type { EnvironmentVariables } from '#lib/command-line/parse-args.ts';
import { EXIT_FAILED, EXIT_OK } from '#lib/command-line/render-error.ts';
import { keepAlive } from '#lib/keep-alive.ts';
import { createLog } from '#lib/log.ts';
import type {
  AuditReaderOptions,
  BackupCommandOptions,
  DoctorOptions,
  HostOptions,
  RestoreBackupOptions,
  TourCommandOptions,
  TransitionProgramOptions,
} from './flags.ts';
import { GUEST_DIR, PROGRAM, pluginHost, stopSignal } from './surroundings.ts';

export async function host({ dataDir, node: name }: HostOptions, words: readonly string[]): Promise<number> {
  const { runHost } = await import('#cli/host/run-host.ts');
  const { stdout, stderr } = process;
  const readFile = (path: string) => readFileSync(path === '-' ? 0 : path, 'utf8');
  await runHost({ dataDir: resolve(dataDir), node: name, words, stdout, stderr, readFile });
  return EXIT_OK;
}

export async function audit({ dataDir, ...flags }: AuditReaderOptions): Promise<number> {
  const { runAudit } = await import('#cli/audit/run-audit.ts');
  const { stdout, stderr } = process;
  const stopping = new AbortController();
  // The reader may close the pipe early.
  stdout.on('error', () => stopping.abort());
  await keepAlive(() => runAudit({ dataDir, flags, stdout, stderr, clock: systemClock, signal: stopping.signal }));
  return EXIT_OK;
}

export async function tour(
  { kubeconfig, dataDir, clear }: TourCommandOptions,
  env: EnvironmentVariables,
): Promise<number> {
  const [{ runClear, runTour, tourError }, { readKubeconfigFile }, { findRunningKubeconfig }] = await Promise.all([
    import('#cli/tour/run-tour.ts'),
    import('#client/kubeconfig-file.ts'),
    import('#cli/tour/running-plane.ts'),
  ]);
  const readFile = (path: string) => readFileSync(path, 'utf8');
  const plugins = await pluginHost(env);
  const loadAccess = (file: string) => readKubeconfigFile(file, plugins);
  const found = kubeconfig ?? findRunningKubeconfig(resolve(dataDir));
  const access = found === undefined ? undefined : loadAccess(found);
  const parts = { access, readFile, screen: process.stdout, clock: systemClock, env, onInterrupt: onExit };
  if (clear) {
    await keepAlive(() => runClear(parts));
    return EXIT_OK;
  }
  if (found === undefined) {
    const { findTourRefusal } = await import('./doctor.ts');
    const refusal = await findTourRefusal({
      dataDir: resolve(dataDir),
      host: '127.0.0.1',
      port: 0,
      guestDir: GUEST_DIR,
    });
    if (refusal !== '') throw new CommandError(refusal);
  }
  const stopping = new AbortController();
  // A closed terminal must not leave guests behind.
  process.once('SIGHUP', () => process.kill(process.pid, 'SIGTERM'));
  void stopSignal().then(() => stopping.abort(new Error('stopped by a signal')));
  try {
    const program = [PROGRAM.file, ...PROGRAM.args] as const;
    const isSame = await runTour({ ...parts, program, loadAccess, signal: stopping.signal });
    return isSame ? EXIT_OK : EXIT_FAILED;
  } catch (error) {
    if (stopping.signal.aborted) return EXIT_FAILED;
    throw tourError(error);
  }
}

/** A second Ctrl-C ends the process at once. */
function onExit(restore: () => void): () => void {
  process.once('exit', restore);
  return () => void process.off('exit', restore);
}

export async function doctor(
  { dataDir, host, port, output, bundle }: DoctorOptions,
  env: EnvironmentVariables,
): Promise<number> {
  const { examineThisMachine, runDoctor } = await import('./doctor.ts');
  const place = { dataDir: resolve(dataDir), host, port, guestDir: GUEST_DIR };
  const examination = await examineThisMachine(place, env['PATH'] ?? '');
  const { stdout } = process;
  return await runDoctor({ examination, place, output, bundle, stdout, clock: systemClock, env });
}

export async function backup({ dataDir, to }: BackupCommandOptions): Promise<number> {
  const { makeBackup } = await import('#plane/embedded/backup/make-backup.ts');
  const now = new Date(systemClock.now());
  const made = makeBackup({ dataDir: resolve(dataDir), to: resolve(to), now });
  const { bytes, from } = await made.catch((error: unknown) => {
    throw toCommandError(`Cannot back up ${dataDir}`, error);
  });
  process.stdout.write(`${to}: ${bytes} bytes, from the ${from}. It contains keys and Secrets: store it safely.\n`);
  return EXIT_OK;
}

export async function runRestoreBackup({ dataDir, from }: RestoreBackupOptions): Promise<number> {
  const { restoreBackupArchive: restore } = await import('#plane/embedded/backup/restore-backup.ts');
  const now = new Date(systemClock.now());
  const restoring = restore({ dataDir: resolve(dataDir), from: resolve(from), now });
  const { createdAt, revision, movedTo } = await restoring.catch((error: unknown) => {
    throw toCommandError(`Cannot restore ${from}`, error);
  });
  process.stdout.write(`Restored ${dataDir} to its state of ${createdAt}, revision ${revision}\n`);
  if (movedTo !== undefined) process.stdout.write(`The previous data was moved to ${movedTo}\n`);
  return EXIT_OK;
}

function toCommandError(what: string, error: unknown): unknown {
  const isPlain = error instanceof Error && (error.name === 'BackupError' || 'code' in error);
  return isPlain ? new CommandError(`${what}: ${error.message}`, { cause: error }) : error;
}

export async function runMachineTypeUpdate(
  { logLevel }: TransitionProgramOptions,
  env: EnvironmentVariables,
): Promise<number> {
  const { runTransitionProgram } = await import('#transition/program.ts');
  const stopping = new AbortController();
  void stopSignal().then(() => stopping.abort(new CommandError('stopped before the end; the next run continues')));
  const readFile = (path: string) => readFileSync(path, 'utf8');
  const { signal } = stopping;
  const log = createLog(logLevel);
  const running = keepAlive(() => runTransitionProgram({ env, readFile, clock: systemClock, log, signal }));
  const outcome = await running;
  if (outcome === 'done') return EXIT_OK;
  throw new CommandError(outcome.failed);
}
