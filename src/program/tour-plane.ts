/**
 * `selfsame tour-plane`: the plane that a tour starts for itself. Unlike `selfsame up` it takes its guests and its data
 * directory along when it ends, and it ends with the tour, also one that was killed: its standard input is the tour's.
 */
import { resolve } from 'node:path';
import { isTourDir } from '#cli/tour/own-plane.ts';
import { removeWithProcesses } from '#lib/owned-dir.ts';
import type { Environment, UpOptions } from './config.ts';
import { up } from './serve.ts';
import { OperatorError, stopSignal } from './surroundings.ts';

export async function tourPlane(options: UpOptions, env: Environment): Promise<number> {
  const dataDir = resolve(options.dataDir);
  // It will be removed.
  if (!isTourDir(dataDir))
    throw new OperatorError(`Cannot use ${dataDir}: it was not created by selfsame tour, which starts its own plane`);
  // Whoever looks for the processes of this directory finds this one, too.
  process.chdir(dataDir);
  // Nobody may be left to read it.
  process.stderr.on('error', () => {});
  try {
    const over = Promise.race([stopSignal(), inputEnds()]);
    return await up({ ...options, dataDir, tokenAuthFile: undefined }, env, over);
  } finally {
    process.stdin.destroy();
    await removeWithProcesses(dataDir);
  }
}

function inputEnds(): Promise<void> {
  return new Promise((resolve) => {
    for (const event of ['end', 'error', 'close']) process.stdin.once(event, () => resolve());
    process.stdin.resume();
  });
}
