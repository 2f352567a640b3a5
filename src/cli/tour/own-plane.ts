/** A plane for the tour alone: the same program in a process of its own, in a directory that goes away with it. */
import { spawn } from 'node:child_process';
import { mkdtemp, readdir, readlink, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { TourError } from '#cli/tour/tour-error.ts';

export interface OwnPlane {
  readonly kubeconfigPath: string;
  stop(): Promise<void>;
}

const LAST_LINES = 20;

/** `program`: how selfsame is started. Rejects with what it said where it does not come up. */
export async function startOwnPlane([file, ...args]: readonly [string, ...string[]]): Promise<OwnPlane> {
  const dir = await mkdtemp(join(tmpdir(), 'selfsame-tour-'));
  // In a group of its own: Ctrl-C is for us, who have to clear up with its help.
  const child = spawn(file, [...args, 'up', '--data-dir', dir, '--port', '0'], {
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true,
  });
  const exited = new Promise<void>((resolve) => void child.once('close', () => resolve()));
  const stop = async () => {
    child.kill('SIGTERM');
    await exited;
    await endWhatIsLeft(dir);
    await rm(dir, { recursive: true, force: true, maxRetries: 5 });
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
      void exited.then(() => reject(new TourError(`the plane did not start: ${said.join('\n')}`)));
    });
  } catch (error) {
    await stop();
    throw error;
  }
  return { kubeconfigPath: join(dir, 'kubeconfig'), stop };
}

/** Guests outlive their plane, and one that could not be cleared away through it must not outlive the tour. */
async function endWhatIsLeft(dir: string): Promise<void> {
  for (const name of await readdir('/proc')) {
    if (!/^\d+$/.test(name)) continue;
    const cwd = await readlink(`/proc/${name}/cwd`).catch(() => '');
    if (cwd !== dir && !cwd.startsWith(`${dir}/`)) continue;
    try {
      process.kill(Number(name), 'SIGKILL');
    } catch {
      // It ended just now.
    }
  }
}
