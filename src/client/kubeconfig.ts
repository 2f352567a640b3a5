/**
 * The address of an API server and the credentials for it, from a kubeconfig or from inside a pod. The caller passes a
 * function that reads files, and a PluginHost if exec plugins may run. Refuses settings that change the user
 * (impersonation) or the connection (proxy).
 */
import { isAbsolute, join } from 'node:path';
import { parse, YAMLParseError } from 'yaml';
import { readAuthProvider } from '#client/credentials/auth-provider.ts';
import type { CredentialSource } from '#client/credentials/credential-source.ts';
import { readExecPlugin, type ClusterSettings } from '#client/credentials/exec-plugin.ts';
import { ExecSource } from '#client/credentials/exec-source.ts';
import { isPresent, KubeconfigError, readString, type KubeconfigFields } from '#client/kubeconfig-fields.ts';
import type { PluginHost } from '#client/credentials/plugin-process.ts';
import { isRecord } from '#kube/meta.ts';

export interface ClusterAccess {
  /** `https://host:port`, possibly with the path of the API. */
  readonly server: string;
  /** The default namespace. */
  readonly namespace: string;
  /** PEM; if absent, the authorities of the system are used. */
  readonly certificateAuthority?: string;
  readonly clientCertificate?: string;
  readonly clientKey?: string;
  readonly token?: string;
  /** Takes precedence over `token`. Read again regularly, because such tokens are rotated. */
  readonly tokenFile?: string;
  /** Provides a token or a client certificate. Absent if the kubeconfig has a token; a fixed certificate has precedence. */
  readonly credentials?: CredentialSource;
  /** The name in the server's certificate, if it is not the host of `server`. */
  readonly serverName?: string;
  readonly insecureSkipTlsVerify: boolean;
}

/** Reads a file as text; throws if it cannot. */
export type ReadFile = (path: string) => string;

export interface LoadKubeconfigOptions {
  /** Overrides the current-context. */
  readonly context?: string;
  /** The directory of the kubeconfig, for relative file names. */
  readonly directory?: string;
  readonly readFile: ReadFile;
  /** Overrides the server of the cluster. */
  readonly server?: string | undefined;
  /** Runs exec plugins. Without it, exec and auth-provider are refused. */
  readonly plugins?: PluginHost | undefined;
}

const MAX_YAML_ALIASES = 100;
const REFUSED_USER_FIELDS = ['username', 'password', 'as', 'as-uid', 'as-groups', 'as-user-extra'];

export function loadKubeconfig(
  text: string,
  { context, directory = '.', readFile, server, plugins }: LoadKubeconfigOptions,
): ClusterAccess {
  const config = parseConfig(text);
  const contextName = context ?? readString(config, 'current-context', 'the kubeconfig');
  if (contextName === undefined || contextName === '') {
    throw new KubeconfigError(
      'Cannot use the kubeconfig: no context is selected; set current-context or pass --context',
    );
  }
  const chosen = findEntry(config, 'contexts', contextName, 'context');
  const where = `context "${contextName}"`;
  const clusterName = requireValue(readString(chosen, 'cluster', where), where, 'cluster');
  const userName = readString(chosen, 'user', where);
  const cluster = findEntry(config, 'clusters', clusterName, 'cluster');
  const user = userName === undefined || userName === '' ? {} : findEntry(config, 'users', userName, 'user');
  const files = { directory, readFile };
  const settings = { ...clusterAccess(cluster, `cluster "${clusterName}"`, files), ...(server ? { server } : {}) };
  const userWhere = `user "${userName}"`;
  const fixed = userAccess(user, userWhere, files);
  const source = userCredentials(user, { where: userWhere, directory, settings, clusterFields: cluster, plugins });
  // A fixed token has precedence, as in client-go.
  const isUsed = source !== undefined && fixed.token === undefined && fixed.tokenFile === undefined;
  return {
    ...settings,
    ...fixed,
    ...(isUsed ? { credentials: source } : {}),
    namespace: readString(chosen, 'namespace', where) ?? 'default',
  };
}

export interface InClusterEnvironment {
  /** KUBERNETES_SERVICE_HOST. */
  readonly host: string | undefined;
  /** KUBERNETES_SERVICE_PORT. */
  readonly port: string | undefined;
}

const SERVICE_ACCOUNT = '/var/run/secrets/kubernetes.io/serviceaccount';

/** Returns the access that Kubernetes gives to each pod: the token of its service account, the CA and the namespace. */
export function inClusterAccess(readFile: ReadFile, { host, port }: InClusterEnvironment): ClusterAccess {
  if (!host || !port) {
    const names = 'KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT';
    throw new KubeconfigError(`Cannot reach the cluster from inside: ${names} are not set; run this in a pod`);
  }
  const files = { directory: SERVICE_ACCOUNT, readFile };
  return {
    server: `https://${host.includes(':') ? `[${host}]` : host}:${port}`,
    namespace: read('namespace', 'the service account', files).trim(),
    certificateAuthority: read('ca.crt', 'the service account', files),
    tokenFile: join(SERVICE_ACCOUNT, 'token'),
    insecureSkipTlsVerify: false,
  };
}

interface Files {
  readonly directory: string;
  readonly readFile: ReadFile;
}

function clusterAccess(cluster: KubeconfigFields, where: string, files: Files): Omit<ClusterAccess, 'namespace'> {
  if (isPresent(cluster['proxy-url'])) throw unsupportedError(where, 'proxy-url');
  const server = requireValue(readString(cluster, 'server', where), where, 'server');
  if (!URL.canParse(server) || new URL(server).protocol !== 'https:') {
    throw new KubeconfigError(
      `Cannot use ${where} of the kubeconfig: its server is "${server}"; expected an https URL`,
    );
  }
  const insecure = cluster['insecure-skip-tls-verify'] === true;
  const certificateAuthority = readPem(cluster, 'certificate-authority', where, files);
  if (insecure && certificateAuthority !== undefined) {
    const both = 'it has both a certificate-authority and insecure-skip-tls-verify';
    throw new KubeconfigError(`Cannot use ${where} of the kubeconfig: ${both}; expected one of them`);
  }
  return {
    server,
    certificateAuthority,
    serverName: readString(cluster, 'tls-server-name', where),
    insecureSkipTlsVerify: insecure,
  };
}

function userAccess(user: KubeconfigFields, where: string, files: Files) {
  for (const field of REFUSED_USER_FIELDS) if (isPresent(user[field])) throw unsupportedError(where, field);
  const clientCertificate = readPem(user, 'client-certificate', where, files);
  const clientKey = readPem(user, 'client-key', where, files);
  if ((clientCertificate === undefined) !== (clientKey === undefined)) {
    const message = 'it has only one of client-certificate and client-key; expected both or neither';
    throw new KubeconfigError(`Cannot use ${where} of the kubeconfig: ${message}`);
  }
  const tokenFile = readString(user, 'tokenFile', where);
  return {
    clientCertificate,
    clientKey,
    token: readString(user, 'token', where),
    tokenFile: tokenFile === undefined ? undefined : resolvePath(tokenFile, files.directory),
  };
}

interface UserContext {
  readonly where: string;
  readonly directory: string;
  readonly settings: ClusterSettings;
  readonly clusterFields: KubeconfigFields;
  readonly plugins: PluginHost | undefined;
}

/** Returns the source for exec or auth-provider, or undefined if the user has neither. Does not run the plugin. */
function userCredentials(user: KubeconfigFields, context: UserContext): CredentialSource | undefined {
  const { where, plugins } = context;
  const { exec, 'auth-provider': provider } = user;
  if (isPresent(exec) && isPresent(provider)) {
    const both = 'it has both exec and auth-provider; expected one of them';
    throw new KubeconfigError(`Cannot use ${where} of the kubeconfig: ${both}`);
  }
  if (isPresent(exec)) {
    if (plugins === undefined) throw unsupportedError(where, 'exec');
    return new ExecSource(readExecPlugin(exec, context), plugins);
  }
  if (!isPresent(provider)) return undefined;
  if (plugins === undefined) throw unsupportedError(where, 'auth-provider');
  return readAuthProvider(provider, where, plugins.clock);
}

/** Reads `<field>-data` (base64) or the file `<field>`. The data takes precedence, as in client-go. */
function readPem(fields: KubeconfigFields, field: string, where: string, files: Files): string | undefined {
  const data = readString(fields, `${field}-data`, where);
  const file = readString(fields, field, where);
  if (!data) return file ? read(file, where, files) : undefined;
  const text = Buffer.from(data, 'base64').toString('utf8');
  if (text.includes('-----BEGIN')) return text;
  throw new KubeconfigError(`Cannot use ${where} of the kubeconfig: ${field}-data is not PEM in base64`);
}

function read(file: string, where: string, { directory, readFile }: Files): string {
  const path = resolvePath(file, directory);
  try {
    return readFile(path);
  } catch (cause) {
    throw new KubeconfigError(`Cannot read ${path} of ${where}: ${(cause as Error).message}`, { cause });
  }
}

function resolvePath(file: string, directory: string): string {
  return isAbsolute(file) ? file : join(directory, file);
}

function parseConfig(text: string): KubeconfigFields {
  let config: unknown;
  try {
    // Warnings quote lines as well.
    config = parse(text, { maxAliasCount: MAX_YAML_ALIASES, logLevel: 'error' });
  } catch (error) {
    throw new KubeconfigError(`Cannot read the kubeconfig: ${yamlProblem(error)}`);
  }
  if (!isRecord(config)) throw new KubeconfigError('Cannot read the kubeconfig: it is not a map of fields');
  if (config['kind'] !== undefined && config['kind'] !== 'Config') {
    throw new KubeconfigError(
      `Cannot read the kubeconfig: its kind is ${JSON.stringify(config['kind'])}; expected Config`,
    );
  }
  return config;
}

/** Returns what is wrong without the text of the parser's error, which quotes lines with secrets. */
function yamlProblem(error: unknown): string {
  if (!(error instanceof YAMLParseError)) return 'it is not usable YAML';
  const [start] = error.linePos ?? [];
  const place = start === undefined ? '' : ` at line ${start.line}, column ${start.col}`;
  return `it is not valid YAML${place} (${error.code})`;
}

/** Returns the entry of `clusters`, `users` or `contexts` with that name. */
function findEntry(config: KubeconfigFields, list: string, name: string, what: string): KubeconfigFields {
  const entries = (Array.isArray(config[list]) ? config[list] : []).filter(isRecord);
  const entry = entries.find((candidate) => candidate['name'] === name);
  const fields = entry?.[what];
  if (isRecord(fields)) return fields;
  // A user without credentials is written as an empty entry.
  if (entry !== undefined && !isPresent(fields)) return {};
  const names = entries.map((candidate) => JSON.stringify(candidate['name']));
  const expected = names.length === 0 ? `there are no ${list}` : `expected one of ${names.join(', ')}`;
  throw new KubeconfigError(`Cannot use the kubeconfig: ${what} "${name}" does not exist; ${expected}`);
}

function requireValue(value: string | undefined, where: string, field: string): string {
  if (value !== undefined && value !== '') return value;
  throw new KubeconfigError(`Cannot use ${where} of the kubeconfig: it has no ${field}`);
}

function unsupportedError(where: string, field: string): KubeconfigError {
  const expected = 'expected a client certificate, a token or a tokenFile';
  return new KubeconfigError(`Cannot use ${where} of the kubeconfig: ${field} is not supported; ${expected}`);
}
