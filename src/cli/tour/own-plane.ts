/**
 * Starts a temporary plane for the tour: the same program in another process, with a temporary data directory. It runs as
 * long as its standard input is open, so it also ends when the tour is killed (program/tour-plane.ts).
 */
import { TourError } from '#cli/tour/tour-api.ts';
import { spawn } from 'node:child_process';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { createInterface } from 'node:readline';
import { findAbandonedDirs, makeOwnedDir, ownerOf, removeWithProcesses } from '#lib/files/owned-dir.ts';

interface OwnPlane {
  readonly kubeconfigPath: string;
  stop(): Promise<void>;
}

const DIR_PREFIX = 'selfsame-tour-';
const LAST_LINES = 20;

/** The argument is the command that starts selfsame. Rejects with the last output if the plane does not start. */
export async function startOwnPlane([file, ...args]: readonly [string, ...string[]]): Promise<OwnPlane> {
  const dir = await makeTourDir();
  // Overrides flags that may be set in the environment.
  const where = ['--data-dir', dir, '--host', '127.0.0.1', '--port', '0', '--nodes', '2'];
  // In its own process group: Ctrl-C must not stop the plane, which the tour needs for the cleanup.
  const child = spawn(file, [...args, 'tour-plane', ...where], { stdio: ['pipe', 'pipe', 'pipe'], detached: true });
  child.stdin.on('error', () => {});
  const exited = new Promise<void>((resolve) => void child.once('close', () => resolve()));
  const stop = async () => {
    child.stdin.end();
    await exited;
    // The plane removes it itself, unless it was killed.
    await removeWithProcesses(dir);
  };
  const output: string[] = [];
  try {
    await new Promise<void>((resolve, reject) => {
      child.once('error', reject);
      for (const stream of [child.stdout, child.stderr]) {
        createInterface({ input: stream }).on('line', (line) => {
          if (output.push(line) > LAST_LINES) output.shift();
          if (line.trim() === 'ready') resolve();
        });
      }
      void exited.then(() => reject(new TourError(`Cannot start the plane: ${output.join('\n')}`)));
    });
  } catch (error) {
    await stop();
    throw error;
  }
  return { kubeconfigPath: join(dir, 'kubeconfig'), stop };
}

/** Creates a temporary directory that later tours and `selfsame doctor` find if this process is killed. */
export const makeTourDir = (): Promise<string> => makeOwnedDir(tmpdir(), DIR_PREFIX);

/** Reports whether the name of a directory is that of a tour's data directory. */
export const isTourDir = (dir: string): boolean => ownerOf(basename(dir), DIR_PREFIX) !== undefined;

/** Returns the directories of tours that were killed together with their planes. */
export async function findKilledTours(): Promise<readonly string[]> {
  return await findAbandonedDirs(tmpdir(), DIR_PREFIX);
}

/** Removes these directories and stops their processes. Returns the directories. */
export async function clearKilledTours(): Promise<readonly string[]> {
  const dirs = await findKilledTours();
  for (const dir of dirs) await removeWithProcesses(dir);
  return dirs;
}
