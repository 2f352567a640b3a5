/** The commands for clusters of others: what main.ts does for them. */
import { readFileSync } from 'node:fs';
import { networkInterfaces } from 'node:os';
import { dirname, resolve } from 'node:path';
import type { Client } from '#client/client.ts';
import type { ClusterAccess } from '#client/kubeconfig.ts';
import { systemClock } from '#lib/clock.ts';
import { createLog } from '#lib/log.ts';
import type { ControllersOptions, Environment, InstallOptions, JoinOptions } from './config.ts';
import type { NodeOptions, UninstallOptions } from './config.ts';

const OK = 0;
/** Timers of the clock keep no process alive, and while the server is away there is nothing else. */
const ALIVE_MS = 60_000;

/** Its message says all. */
class CommandError extends Error {
  override name = 'CommandError';
}

export function nodeOfCluster({ kubeconfig, address, port }: NodeOptions) {
  if (kubeconfig === undefined) return undefined;
  return { kubeconfig: resolve(kubeconfig), address: address ?? firstAddress(), port };
}

export async function install({ kubeconfig, apply, dryRun }: InstallOptions, env: Environment): Promise<number> {
  const { applyInstallation, installYaml } = await import('#operator/install.ts');
  if (!apply) {
    process.stdout.write(installYaml());
    return OK;
  }
  return await withCluster({ kubeconfig, env }, async ({ client }) => {
    const say = (line: string) => void process.stdout.write(`${line}\n`);
    const changed = await applyInstallation({ client, clock: systemClock, dryRun, say });
    say(changed === 0 ? 'nothing changed' : `${changed} objects changed`);
    return OK;
  });
}

export async function uninstall({ kubeconfig }: UninstallOptions, env: Environment): Promise<number> {
  const { uninstallation } = await import('#operator/uninstall.ts');
  return await withCluster({ kubeconfig, env }, async ({ client }) => {
    const outcome = await uninstallation(client);
    if ('refused' in outcome) throw new CommandError(outcome.refused);
    process.stdout.write(`${outcome.commands.join('\n')}\n`);
    return OK;
  });
}

export async function joinCluster(options: JoinOptions, env: Environment): Promise<number> {
  const { as, name, engineDataDir } = options;
  const out = resolve(options.out);
  if (as === 'node' && engineDataDir !== undefined) {
    const { issueNodeKubeconfig } = await import('#plane/embedded/admit-node.ts');
    await issueNodeKubeconfig(resolve(engineDataDir), name, out);
  } else {
    const { joinControllers, joinNode } = await import('#plane/cluster/join.ts');
    await withCluster({ kubeconfig: options.kubeconfig, env }, async ({ client, access }) => {
      const parts = { client, access, out, clock: systemClock };
      await (as === 'node' ? joinNode(name, parts) : joinControllers(parts));
      return OK;
    });
  }
  process.stdout.write(`${out}\n`);
  return OK;
}

/** Resolves when the signal was aborted and everything has ended. */
export async function runControllers(
  options: ControllersOptions,
  env: Environment,
  signal: AbortSignal,
): Promise<number> {
  const { webhookPort: port, listenAddress, certificateLifetime: certificateMs, caLifetime: authorityMs } = options;
  if (authorityMs < 4 * certificateMs) {
    throw new CommandError('--ca-lifetime must be at least four times --certificate-lifetime');
  }
  const { runControllersProgram } = await import('#plane/cluster/controllers-program.ts');
  const alive = setInterval(() => {}, ALIVE_MS);
  try {
    await runControllersProgram({
      access: await clusterAccess(options.kubeconfig, env),
      ...{ host: listenAddress, port, advertiseAddress: options.advertiseAddress ?? firstAddress() },
      lifetimes: { certificateMs, authorityMs },
      clock: systemClock,
      log: createLog(options.logLevel),
      signal,
      onReady: () => process.stdout.write('ready\n'),
      onLeading: () => process.stdout.write('leading\n'),
    });
  } finally {
    clearInterval(alive);
  }
  process.stdout.write('stopped\n');
  return OK;
}

/** From a file, or as in any pod. */
async function clusterAccess(kubeconfig: string | undefined, env: Environment): Promise<ClusterAccess> {
  const { inClusterAccess, loadKubeconfig } = await import('#client/kubeconfig.ts');
  const readFile = (path: string) => readFileSync(path, 'utf8');
  if (kubeconfig !== undefined)
    return loadKubeconfig(readFile(kubeconfig), { directory: dirname(resolve(kubeconfig)), readFile });
  const { KUBERNETES_SERVICE_HOST: host, KUBERNETES_SERVICE_PORT: port } = env;
  if (!host || !port) throw new CommandError('--kubeconfig is missing, and this is no pod of a cluster');
  return inClusterAccess(readFile, { host, port });
}

async function withCluster(
  { kubeconfig, env }: { readonly kubeconfig: string | undefined; readonly env: Environment },
  use: (cluster: { client: Client; access: ClusterAccess }) => Promise<number>,
): Promise<number> {
  const [{ createHttpTransport }, { createClient }] = await Promise.all([
    import('#client/http.ts'),
    import('#client/rest-client.ts'),
  ]);
  const access = await clusterAccess(kubeconfig, env);
  const transport = createHttpTransport(access, { userAgent: 'selfsame-install', clock: systemClock });
  const alive = setInterval(() => {}, ALIVE_MS);
  try {
    return await use({ client: createClient(transport), access });
  } finally {
    clearInterval(alive);
    transport.close();
  }
}

/** Of this machine, as others reach it. */
function firstAddress(): string {
  const all = Object.values(networkInterfaces()).flatMap((one) => one ?? []);
  return all.find(({ internal, family }) => !internal && family === 'IPv4')?.address ?? '127.0.0.1';
}
