/** Finds API server and credentials: flags, KUBECONFIG, ~/.kube/config or the service account of the pod, in this order. */
import { dirname, join } from 'node:path';
import { CommandError } from '#lib/command-line/command-error.ts';
import { textFlag } from '#lib/command-line/flag.ts';
import { inClusterAccess, loadKubeconfig, type ClusterAccess, type ReadFile } from '#client/kubeconfig.ts';
import type { EnvironmentVariables } from '#lib/command-line/parse-args.ts';
import { KubeconfigError } from '#client/kubeconfig-fields.ts';
import type { PluginHost } from '#client/credentials/plugin-process.ts';

export const accessFlags = {
  kubeconfig: textFlag(
    { name: 'kubeconfig', help: 'Path to the kubeconfig file to use for CLI requests.', completes: 'file' },
    'string',
  ),
  context: textFlag({ name: 'context', help: 'The name of the kubeconfig context to use' }, 'string'),
  namespace: textFlag(
    {
      name: 'namespace',
      short: 'n',
      help: 'If present, the namespace scope for this CLI request',
      completes: 'namespace',
    },
    'string',
  ),
  as: textFlag({ name: 'as', help: 'Username to impersonate for the operation' }, 'string'),
  server: textFlag({ name: 'server', short: 's', help: 'The address and port of the Kubernetes API server' }, 'string'),
};

export interface AccessOptions {
  readonly kubeconfig?: string | undefined;
  readonly context?: string | undefined;
  readonly namespace?: string | undefined;
  readonly server?: string | undefined;
}

/** Returns flags with which another call reaches the same server as the same user. */
export function accessArguments(choice: AccessOptions & { readonly as?: string | undefined }): string[] {
  const { kubeconfig, context, server, as } = choice;
  const given = { kubeconfig, context, server, as };
  return Object.entries(given).flatMap(([name, value]) => (value === undefined ? [] : [`--${name}=${value}`]));
}

export interface AccessSources {
  readonly env: EnvironmentVariables;
  readonly home: string;
  readonly readFile: ReadFile;
  /** Runs exec plugins of the kubeconfig. */
  readonly plugins?: PluginHost | undefined;
}

/** Throws CommandError. */
export function findAccess(choice: AccessOptions, sources: AccessSources): ClusterAccess {
  const { namespace, server } = choice;
  if (server !== undefined && (!URL.canParse(server) || new URL(server).protocol !== 'https:')) {
    throw new CommandError(`Cannot use --server ${server}: expected an https URL`);
  }
  try {
    const found = loadFromFiles(choice, sources) ?? loadFromPod(sources);
    return { ...found, ...(namespace === undefined ? {} : { namespace }), ...(server === undefined ? {} : { server }) };
  } catch (error) {
    if (!(error instanceof KubeconfigError)) throw error;
    throw new CommandError(error.message, { cause: error });
  }
}

/** Reads the first usable file of KUBECONFIG. Skips missing files. */
function loadFromFiles(
  choice: AccessOptions,
  { env, home, readFile, plugins }: AccessSources,
): ClusterAccess | undefined {
  const { kubeconfig, context, server } = choice;
  const listed = (env['KUBECONFIG'] ?? '').split(':').filter((path) => path !== '');
  const paths = kubeconfig !== undefined ? [kubeconfig] : listed.length > 0 ? listed : [join(home, '.kube', 'config')];
  let firstError: Error | undefined;
  for (const path of paths) {
    const text = readIfPresent(path, readFile, kubeconfig !== undefined || listed.length === 1);
    if (text === undefined) continue;
    try {
      return loadKubeconfig(text, {
        directory: dirname(path),
        readFile,
        server,
        plugins,
        ...(context === undefined ? {} : { context }),
      });
    } catch (error) {
      firstError ??= error as Error;
    }
  }
  if (firstError !== undefined) throw firstError;
  return undefined;
}

function readIfPresent(path: string, readFile: ReadFile, required: boolean): string | undefined {
  try {
    return readFile(path);
  } catch (error) {
    if (!required && (error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw new CommandError(`Cannot read the kubeconfig: ${(error as Error).message}`, { cause: error });
  }
}

function loadFromPod({ env, readFile }: AccessSources): ClusterAccess {
  const [host, port] = [env['KUBERNETES_SERVICE_HOST'], env['KUBERNETES_SERVICE_PORT']];
  if (host === undefined) {
    throw new CommandError('Cannot find a cluster: no kubeconfig found; set --kubeconfig or KUBECONFIG');
  }
  return inClusterAccess(readFile, { host, port });
}
