/**
 * `selfsame tour-plane`: the temporary plane of a tour. Unlike `selfsame up` it removes its guests and its data directory
 * when it ends. It ends with its standard input, so that it also ends when the tour is killed.
 */
import { resolve } from 'node:path';
import { isTourDir } from '#cli/tour/own-plane.ts';
import { CommandError } from '#lib/command-line/command-error.ts';
import { errorMessage } from '#lib/error-message.ts';
import type { EnvironmentVariables } from '#lib/command-line/parse-args.ts';
import { removeWithProcesses } from '#lib/files/owned-dir.ts';
import type { UpOptions } from './flags.ts';
import { up } from './serve.ts';
import { stopSignal } from './surroundings.ts';

export async function tourPlane(options: UpOptions, env: EnvironmentVariables): Promise<number> {
  const dataDir = resolve(options.dataDir);
  // This directory will be removed.
  if (!isTourDir(dataDir))
    throw new CommandError(`Cannot use ${dataDir}: it was not created by selfsame tour, which starts its own plane`);
  // Cleanup finds the processes of a data directory by their working directory.
  process.chdir(dataDir);
  // The tour may have closed the pipe.
  process.stderr.on('error', () => {});
  try {
    const stopped = Promise.race([stopSignal(), waitForInputEnd()]);
    return await up({ ...options, dataDir, tokenAuthFile: undefined }, env, stopped);
  } finally {
    process.stdin.destroy();
    const { removeNetworks } = await import('#plane/node/remove-networks.ts');
    // What stays of the networks does not keep the data.
    await removeNetworks(dataDir).catch((error: unknown) => process.stderr.write(`${errorMessage(error)}\n`));
    await removeWithProcesses(dataDir);
  }
}

function waitForInputEnd(): Promise<void> {
  return new Promise((resolve) => {
    for (const event of ['end', 'error', 'close']) process.stdin.once(event, () => resolve());
    process.stdin.resume();
  });
}
