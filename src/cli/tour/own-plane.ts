/**
 * A plane for the tour alone: the same program in a process of its own, in a directory that goes away with it. It lives as
 * long as its standard input is open, so that it ends with the tour, however that ends (program/tour-plane.ts).
 */
import { spawn } from 'node:child_process';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { createInterface } from 'node:readline';
import { TourError } from '#cli/tour/tour-error.ts';
import { abandonedDirs, makeOwnedDir, ownerOf, removeWithProcesses } from '#lib/owned-dir.ts';

export interface OwnPlane {
  readonly kubeconfigPath: string;
  stop(): Promise<void>;
}

const DIR_PREFIX = 'selfsame-tour-';
const LAST_LINES = 20;

/** `program`: how selfsame is started. Rejects with what it said where it does not come up. */
export async function startOwnPlane([file, ...args]: readonly [string, ...string[]]): Promise<OwnPlane> {
  const dir = await makeOwnedDir(tmpdir(), DIR_PREFIX);
  // All that could come from the environment and does not fit is said here.
  const where = ['--data-dir', dir, '--host', '127.0.0.1', '--port', '0', '--nodes', '2'];
  // In a group of its own: Ctrl-C is for us, who have to clear up with its help.
  const child = spawn(file, [...args, 'tour-plane', ...where], { stdio: ['pipe', 'pipe', 'pipe'], detached: true });
  child.stdin.on('error', () => {});
  const exited = new Promise<void>((resolve) => void child.once('close', () => resolve()));
  const stop = async () => {
    child.stdin.end();
    await exited;
    // It has done so itself, unless it was killed.
    await removeWithProcesses(dir);
  };
  const said: string[] = [];
  try {
    await new Promise<void>((resolve, reject) => {
      child.once('error', reject);
      for (const stream of [child.stdout, child.stderr]) {
        createInterface({ input: stream }).on('line', (line) => {
          if (said.push(line) > LAST_LINES) said.shift();
          if (line.trim() === 'ready') resolve();
        });
      }
      void exited.then(() => reject(new TourError(`Cannot start the plane: ${said.join('\n')}`)));
    });
  } catch (error) {
    await stop();
    throw error;
  }
  return { kubeconfigPath: join(dir, 'kubeconfig'), stop };
}

/** Whether it is one that a tour made for itself, as far as its name tells. */
export const isTourDir = (dir: string): boolean => ownerOf(basename(dir), DIR_PREFIX) !== undefined;

/** The directories of tours that were killed together with their planes. */
export async function killedTours(): Promise<readonly string[]> {
  return await abandonedDirs(tmpdir(), DIR_PREFIX);
}

/** Removes them, with all that still runs in them; which ones. */
export async function clearKilledTours(): Promise<readonly string[]> {
  const dirs = await killedTours();
  for (const dir of dirs) await removeWithProcesses(dir);
  return dirs;
}
