/**
 * The `selfsame` program: reads argv and env (through program/config.ts), takes signals, prints for people and sets the exit
 * code. 0: done or stopped as asked; 1: could not do it; 2: misused.
 *
 *   config ─► lock of the data directory ─► engine ─► "ready" ─► SIGINT or SIGTERM ─► stop ─► exit 0
 *                                                                       └─ a second one ─► exit at once
 *
 * Standard output is for people and scripts (the last line of a start is `ready`), standard error for logs.
 */
import { DataDirError } from '#lib/data-dir-lock.ts';
import { VERSION } from '#lib/version.ts';
import { controllers, installIntoCluster, joinCluster, uninstall } from './program/clusters.ts';
import { parseCommandLine } from './program/config.ts';
import { node } from './program/node.ts';
import { engine, up } from './program/serve.ts';
import { EXIT_FAILED, EXIT_USAGE, EXIT_OK, OperatorError } from './program/surroundings.ts';
import { tourPlane } from './program/tour-plane.ts';
import { audit, backup, doctor, host, runRestoreBackup, tour, runMachineTypeUpdate } from './program/tools.ts';

/** Errors whose message says all to the operator; others are our own mistakes and keep their stack. */
const PLAIN_ERRORS = new Set([
  'StoreDamagedError',
  'StoreUnavailableError',
  'PkiError',
  'TokenFileError',
  'KubeconfigError',
  'CredentialError',
  'JoinError',
  'ApiError',
  'TransportError',
]);

async function main(): Promise<number> {
  const config = parseCommandLine(process.argv.slice(2), process.env);
  if ('usageError' in config) {
    process.stderr.write(`selfsame: ${config.usageError}\nTry: selfsame help\n`);
    return EXIT_USAGE;
  }
  switch (config.command) {
    case 'help':
      process.stdout.write(config.text);
      return EXIT_OK;
    case 'version':
      process.stdout.write(`selfsame ${VERSION} (node ${process.versions.node})\n`);
      return EXIT_OK;
    case 'up':
      return await up(config.options, process.env);
    case 'engine':
      return await engine(config.options);
    case 'node':
      return await node(config.options, process.env);
    case 'install':
      return await installIntoCluster(config.options, process.env);
    case 'uninstall':
      return await uninstall(config.options, process.env);
    case 'join':
      return await joinCluster(config.options, process.env);
    case 'controllers':
      return await controllers(config.options, process.env);
    case 'host':
      return await host(config.options);
    case 'audit':
      return await audit(config.options);
    case 'tour':
      return await tour(config.options, process.env);
    case 'tour-plane':
      return await tourPlane(config.options, process.env);
    case 'doctor':
      return await doctor(config.options);
    case 'backup':
      return await backup(config.options);
    case 'restore-backup':
      return await runRestoreBackup(config.options);
    case 'update-machine-types':
      return await runMachineTypeUpdate(config.options);
  }
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
  process.exitCode = EXIT_FAILED;
}
