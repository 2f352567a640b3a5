/** Commands that inspect or back up a plane or a machine: host, audit, tour, doctor, backups and Jobs. */
import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { systemClock } from '#lib/clock.ts';
import { createLog } from '#lib/log.ts';
import type { AuditReaderOptions, BackupOptions, DoctorOptions, HostOptions } from './config.ts';
import type { RestoreBackupOptions, TourOptions, TransitionProgramOptions } from './config.ts';
import { FAILED, GUEST_DIR, OK, OperatorError, PROGRAM, keptAlive, stopSignal } from './surroundings.ts';

export async function host({ dataDir, node: name, words }: HostOptions): Promise<number> {
  const { runHost } = await import('#cli/host/run-host.ts');
  const { stdout, stderr } = process;
  const readFile = (path: string) => readFileSync(path === '-' ? 0 : path, 'utf8');
  return await runHost({ dataDir: resolve(dataDir), node: name, words, stdout, stderr, readFile });
}

export async function audit({ dataDir, words }: AuditReaderOptions): Promise<number> {
  const { runAudit } = await import('#cli/audit/run-audit.ts');
  const { stdout, stderr } = process;
  const leaving = new AbortController();
  // The reader may close the pipe early.
  stdout.on('error', () => leaving.abort());
  return await keptAlive(() =>
    runAudit({ dataDir, words, stdout, stderr, clock: systemClock, signal: leaving.signal }),
  );
}

export async function tour({ kubeconfig, dataDir, clear }: TourOptions): Promise<number> {
  const [{ runClear, runTour, tourFault }, { readKubeconfigFile: loadAccess }, { runningIn }] = await Promise.all([
    import('#cli/tour/run-tour.ts'),
    import('#client/kubeconfig-file.ts'),
    import('#cli/tour/running-plane.ts'),
  ]);
  const readFile = (path: string) => readFileSync(path, 'utf8');
  const found = kubeconfig ?? runningIn(resolve(dataDir));
  const access = found === undefined ? undefined : loadAccess(found);
  const seen = { access, readFile, screen: process.stdout, clock: systemClock };
  if (clear) {
    await keptAlive(() => runClear(seen));
    return OK;
  }
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
  // A closed terminal must not leave guests behind.
  process.once('SIGHUP', () => process.kill(process.pid, 'SIGTERM'));
  void stopSignal().then(() => leaving.abort(new Error('stopped by a signal')));
  try {
    const program = [PROGRAM.file, ...PROGRAM.args] as const;
    const isSame = await runTour({ ...seen, program, loadAccess, signal: leaving.signal });
    return isSame ? OK : FAILED;
  } catch (error) {
    if (leaving.signal.aborted) return FAILED;
    process.stderr.write(`${tourFault(error)}\n`);
    return FAILED;
  }
}

export async function doctor({ dataDir, host, port, output, bundle, path }: DoctorOptions): Promise<number> {
  const { examinationOf, runDoctor } = await import('./doctor.ts');
  const place = { dataDir: resolve(dataDir), host, port, guestDir: GUEST_DIR };
  const examination = await examinationOf(place, path);
  const { stdout, stderr } = process;
  return await runDoctor({ examination, place, output, bundle, stdout, stderr, clock: systemClock });
}

export async function backup({ dataDir, to }: BackupOptions): Promise<number> {
  const { makeBackup } = await import('#plane/embedded/backup/make-backup.ts');
  const now = new Date(systemClock.now());
  const made = makeBackup({ dataDir: resolve(dataDir), to: resolve(to), now });
  const { bytes, from } = await made.catch((error: unknown) => {
    throw backupFault(`Cannot back up ${dataDir}`, error);
  });
  process.stdout.write(`${to}: ${bytes} bytes, from the ${from}. It contains keys and Secrets: store it safely.\n`);
  return OK;
}

export async function restoreBackup({ dataDir, from }: RestoreBackupOptions): Promise<number> {
  const { restoreBackup: restore } = await import('#plane/embedded/backup/restore-backup.ts');
  const now = new Date(systemClock.now());
  const restoring = restore({ dataDir: resolve(dataDir), from: resolve(from), now });
  const { createdAt, revision, movedTo } = await restoring.catch((error: unknown) => {
    throw backupFault(`Cannot restore ${from}`, error);
  });
  process.stdout.write(`Restored ${dataDir} to its state of ${createdAt}, revision ${revision}\n`);
  if (movedTo !== undefined) process.stdout.write(`The previous data was moved to ${movedTo}\n`);
  return OK;
}

function backupFault(what: string, error: unknown): unknown {
  const isPlain = error instanceof Error && (error.name === 'BackupError' || 'code' in error);
  return isPlain ? new OperatorError(`${what}: ${error.message}`, { cause: error }) : error;
}

export async function updateMachineTypes({ logLevel, env }: TransitionProgramOptions): Promise<number> {
  const { runTransitionProgram } = await import('#transition/program.ts');
  const leaving = new AbortController();
  void stopSignal().then(() => leaving.abort(new OperatorError('stopped before the end; the next run continues')));
  const readFile = (path: string) => readFileSync(path, 'utf8');
  const { signal } = leaving;
  const log = createLog(logLevel);
  const running = keptAlive(() => runTransitionProgram({ env, readFile, clock: systemClock, log, signal }));
  const outcome = await running;
  if (outcome === 'done') return OK;
  throw new OperatorError(outcome.failed);
}
