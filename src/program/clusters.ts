/** Commands for existing clusters: install, uninstall, join, controllers. */
import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import type { Client } from '#client/client.ts';
import type { ClusterAccess } from '#client/kubeconfig.ts';
import { systemClock } from '#lib/clock.ts';
import { CommandError } from '#lib/command-line/command-error.ts';
import type { EnvironmentVariables } from '#lib/command-line/parse-args.ts';
import { EXIT_OK } from '#lib/command-line/render-error.ts';
import { keepAlive } from '#lib/keep-alive.ts';
import { createLog } from '#lib/log.ts';
import type { ControllersOptions, InstallOptions, JoinOptions, UninstallOptions } from './flags.ts';
import { firstAddress, listenError, pluginHost, stopSignal } from './surroundings.ts';

/** kubectl refuses objects of a kind that the same manifest defines. */
const SUBNETS_WITHOUT_APPLY =
  'Cannot print a GuestNetwork: kubectl refuses objects of a kind that the same manifest defines; use --guest-subnets with --apply, or create the GuestNetwork after the installation';

export async function installIntoCluster(
  { kubeconfig, apply, dryRun, guestSubnets }: InstallOptions,
  env: EnvironmentVariables,
): Promise<number> {
  const { applyInstallation, installYaml } = await import('#operator/install.ts');
  const subnets = guestSubnets === 'none' ? undefined : guestSubnets;
  if (!apply) {
    if (subnets !== undefined) throw new CommandError(SUBNETS_WITHOUT_APPLY);
    process.stdout.write(installYaml());
    return EXIT_OK;
  }
  return await withCluster(await clusterAccess(kubeconfig, env), async (client) => {
    const say = (line: string) => void process.stdout.write(`${line}\n`);
    const changed = await applyInstallation({ client, clock: systemClock, dryRun, subnets, print: say });
    say(changed === 0 ? 'nothing changed' : `${changed} objects changed`);
    return EXIT_OK;
  });
}

export async function uninstall({ kubeconfig }: UninstallOptions, env: EnvironmentVariables): Promise<number> {
  const { planUninstall } = await import('#operator/uninstall.ts');
  return await withCluster(await clusterAccess(kubeconfig, env), async (client) => {
    const outcome = await planUninstall(client);
    if ('refused' in outcome) throw new CommandError(outcome.refused);
    process.stdout.write(`${outcome.commands.join('\n')}\n`);
    return EXIT_OK;
  });
}

export async function joinCluster(options: JoinOptions, env: EnvironmentVariables): Promise<number> {
  const { as, name, engineDataDir } = options;
  const out = resolve(options.out);
  if (as === 'node' && engineDataDir !== undefined) {
    const { issueNodeKubeconfig } = await import('#plane/embedded/admit-node.ts');
    await issueNodeKubeconfig(resolve(engineDataDir), name, out).catch((cause: Error) => {
      throw 'code' in cause ? new CommandError(`Cannot join: ${cause.message}`, { cause }) : cause;
    });
  } else {
    const { joinControllers, joinNode } = await import('#plane/cluster/join.ts');
    const access = await clusterAccess(options.kubeconfig, env);
    await withCluster(access, async (client) => {
      const parts = { client, access, out, clock: systemClock };
      await (as === 'node' ? joinNode(name, parts) : joinControllers(parts));
      return EXIT_OK;
    });
  }
  process.stdout.write(`${out}\n`);
  return EXIT_OK;
}

export async function controllers(options: ControllersOptions, env: EnvironmentVariables): Promise<number> {
  const { runControllersProgram } = await import('#plane/cluster/controllers-program.ts');
  const { webhookPort: port, listenAddress, certificateLifetime: certificateMs, caLifetime: authorityMs } = options;
  if (authorityMs < 4 * certificateMs) {
    throw new CommandError('--ca-lifetime must be at least four times --certificate-lifetime');
  }
  const stopping = new AbortController();
  void stopSignal().then(() => stopping.abort());
  const access = await clusterAccess(options.kubeconfig, env);
  const running = keepAlive(() =>
    runControllersProgram({
      access,
      ...{ host: listenAddress, port, advertiseAddress: options.advertiseAddress ?? firstAddress() },
      lifetimes: { certificateMs, authorityMs },
      clock: systemClock,
      log: createLog(options.logLevel),
      signal: stopping.signal,
      onReady: () => process.stdout.write('ready\n'),
      onLeading: () => process.stdout.write('leading\n'),
    }),
  );
  await running.catch((error: unknown) => {
    throw listenError(error, { host: listenAddress, port }) ?? error;
  });
  process.stdout.write('stopped\n');
  return EXIT_OK;
}

/** Reads the kubeconfig, or the in-cluster configuration without one. */
async function clusterAccess(kubeconfig: string | undefined, env: EnvironmentVariables): Promise<ClusterAccess> {
  if (kubeconfig !== undefined) {
    const { readKubeconfigFile } = await import('#client/kubeconfig-file.ts');
    return readKubeconfigFile(kubeconfig, await pluginHost(env));
  }
  const { KUBERNETES_SERVICE_HOST: host, KUBERNETES_SERVICE_PORT: port } = env;
  if (!host || !port) throw new CommandError('--kubeconfig is required outside of a cluster');
  const { inClusterAccess } = await import('#client/kubeconfig.ts');
  return inClusterAccess((path) => readFileSync(path, 'utf8'), { host, port });
}

async function withCluster(access: ClusterAccess, use: (client: Client) => Promise<number>): Promise<number> {
  const [{ createHttpTransport }, { createClient }] = await Promise.all([
    import('#client/http.ts'),
    import('#client/rest-client.ts'),
  ]);
  const transport = createHttpTransport(access, { userAgent: 'selfsame-install', clock: systemClock });
  try {
    return await keepAlive(() => use(createClient(transport)));
  } finally {
    transport.close();
  }
}
