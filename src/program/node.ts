/** `selfsame node`: the agent of one node, of the embedded engine or of an existing cluster. */
import { resolve } from 'node:path';
import { systemClock } from '#lib/clock.ts';
import type { EnvironmentVariables } from '#lib/command-line/parse-args.ts';
import { EXIT_OK } from '#lib/command-line/render-error.ts';
import { acquireDataDir } from '#lib/files/data-dir-lock.ts';
import { createLog } from '#lib/log.ts';
import { isWildcard } from '#lib/wildcard-address.ts';
import type { NodeOptions } from './flags.ts';
import { GUEST_DIR, PROGRAM, firstAddress, pluginHost, stopInTime, stopSignal } from './surroundings.ts';

export async function node(options: NodeOptions, env: EnvironmentVariables): Promise<number> {
  const nodeDir = resolve(options.dataDir);
  const sharedDir = resolve(options.sharedDir);
  const stopped = stopSignal();
  const lock = acquireDataDir(nodeDir);
  try {
    // Cleanup finds the processes of a data directory by their working directory.
    process.chdir(nodeDir);
    const { startNodeProgram } = await import('#plane/node/node-program.ts');
    const { name, hypervisor, accel, logLevel } = options;
    const stopping = new AbortController();
    void stopped.then(() => stopping.abort());
    const program = await startNodeProgram({
      ...{ name, nodeDir, sharedDir, hypervisor, accel },
      cluster: nodeOfCluster(options),
      plugins: await pluginHost(env),
      guestDir: GUEST_DIR,
      isRoot: process.getuid?.() === 0,
      program: [PROGRAM.file, ...PROGRAM.args],
      clock: systemClock,
      log: createLog(logLevel),
      signal: stopping.signal,
    }).catch((error: unknown) => {
      if (!stopping.signal.aborted) throw error;
    });
    if (program === undefined) return EXIT_OK;
    if (process.send === undefined) process.stdout.write('ready\n');
    else process.send('ready', () => process.disconnect?.());
    await stopped;
    await stopInTime(program.stop);
  } finally {
    lock.release();
  }
  return EXIT_OK;
}

function nodeOfCluster({ kubeconfig, address, nodeIp, hostname, port }: NodeOptions) {
  if (kubeconfig === undefined) return undefined;
  const reached = nodeIp ?? (address === undefined || isWildcard(address) ? firstAddress() : address);
  return { kubeconfig: resolve(kubeconfig), address: address ?? reached, port, nodeIp: reached, hostname };
}
