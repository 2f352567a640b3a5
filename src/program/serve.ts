/** `selfsame up` and `selfsame engine`, which own a data directory and serve the API. */
import { hostname } from 'node:os';
import { resolve } from 'node:path';
import type { AuditOptions } from '#engine/audit/audit-options.ts';
import { systemClock, type Clock } from '#lib/clock.ts';
import type { EnvironmentVariables } from '#lib/command-line/parse-args.ts';
import { CommandError } from '#lib/command-line/command-error.ts';
import { networksOverlap, parseIpNetwork } from '#lib/ip-address.ts';
import { EXIT_OK } from '#lib/command-line/render-error.ts';
import { acquireDataDir } from '#lib/files/data-dir-lock.ts';
import { createLog, type Log } from '#lib/log.ts';
import { VERSION } from '#lib/version.ts';
import { withoutFlagVariables } from './flag-kinds.ts';
import type { EngineCommandOptions, UpOptions } from './flags.ts';
import { PROGRAM, listenError, stopInTime, stopSignal } from './surroundings.ts';

export async function up(options: UpOptions, env: EnvironmentVariables, stopped = stopSignal()): Promise<number> {
  return await serve(options, stopped, async (parts) => {
    // Imported lazily to keep help and version fast.
    const { startPlane } = await import('#plane/embedded/plane.ts');
    const { hypervisor, accel, logLevel, nodes } = options;
    const nodeFlags = ['--hypervisor', hypervisor, '--accel', accel, '--log-level', logLevel];
    const plane = await startPlane({
      ...parts,
      nodes,
      guestNetwork: await guestNetworkOf(options),
      program: { ...PROGRAM, nodeFlags, env: withoutFlagVariables(env) },
    });
    return { stop: plane.stop, text: welcome(plane, nodes) };
  });
}

/** Returns the subnets for a plane that has no network of guests yet, or undefined if it gets none. */
async function guestNetworkOf({ guestSubnets, serviceSubnets, hypervisor, dataDir }: UpOptions) {
  if (guestSubnets === 'none') return undefined;
  if (guestSubnets !== 'auto') {
    const networks = serviceSubnets.map(parseIpNetwork);
    const overlap = guestSubnets.find((text) =>
      networks.some((network) => networksOverlap(network, parseIpNetwork(text))),
    );
    if (overlap === undefined) return { subnets: guestSubnets };
    throw new CommandError(
      `Cannot use ${overlap} for guests: it overlaps with --service-subnets ${serviceSubnets.join(',')}; choose another one with --guest-subnets`,
    );
  }
  // Namespaces need root, and simulated guests have none.
  if (hypervisor !== 'qemu' || process.getuid?.() !== 0) return undefined;
  const { chooseFreeSubnets } = await import('#plane/node/choose-subnets.ts');
  return { chooseSubnets: () => chooseFreeSubnets(`${hostname()} ${resolve(dataDir)}`, serviceSubnets) };
}

export async function engine(options: EngineCommandOptions): Promise<number> {
  return await serve(options, stopSignal(), async (parts) => {
    const { startEngine } = await import('#engine/engine.ts');
    const started = await startEngine(parts);
    return { stop: started.stop, text: engineWelcome(started) };
  });
}

/** Shared by `up` and `engine`: holds the lock of the data directory from before the start until after the stop. */
async function serve(
  options: EngineCommandOptions,
  stopped: Promise<void>,
  start: (parts: ServerParts) => Promise<{ stop(): Promise<void>; text: string }>,
): Promise<number> {
  const dataDir = resolve(options.dataDir);
  const lock = acquireDataDir(dataDir);
  try {
    const { host, port, tokenAuthFile, eventTtl: eventTtlMs, serviceSubnets, loadBalancer } = options;
    const tokens = tokenAuthFile === undefined ? undefined : resolve(tokenAuthFile);
    const audit = auditOptions(options);
    const log = createLog(options.logLevel);
    const served = { host, port, serviceSubnets, loadBalancer };
    const parts = { ...served, dataDir, tokenAuthFile: tokens, audit, eventTtlMs, log, clock: systemClock };
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
  return EXIT_OK;
}

interface ServerParts {
  readonly dataDir: string;
  readonly host: string;
  readonly port: number;
  readonly tokenAuthFile: string | undefined;
  readonly audit: AuditOptions;
  readonly eventTtlMs: number;
  readonly serviceSubnets: readonly string[];
  readonly loadBalancer: boolean;
  readonly log: Log;
  readonly clock: Clock;
}

function auditOptions({ audit: level, auditLogMaxSize, auditLogMaxBackup }: EngineCommandOptions): AuditOptions {
  return { level, maxBytes: auditLogMaxSize * 1024 * 1024, maxRotated: auditLogMaxBackup };
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
    'To use the administrator kubeconfig:',
    `  export KUBECONFIG=${shellWord(kubeconfigPath)}`,
    'Then try:',
    '  kubectl apply -f examples/vm.yaml',
    '  kubectl get vms,vmis,pods',
    '  ./virtctl console hello        # Ctrl-] to exit',
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
    'To use the administrator kubeconfig:',
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
