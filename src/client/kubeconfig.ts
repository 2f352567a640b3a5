/**
 * Where an API server is and how to prove who we are, from a kubeconfig or from inside a pod. Files are read through
 * the function that is handed in. What would need a foreign program (exec, auth-provider) or would silently change
 * who acts (impersonation) or where to (proxy) is refused by name.
 */
import { isAbsolute, join } from 'node:path';
import { parse } from 'yaml';
import { isRecord } from '#kube/meta.ts';

export interface ClusterAccess {
  /** `https://host:port`, perhaps with a path below which the API lives. */
  readonly server: string;
  /** The namespace to use where none is named. */
  readonly namespace: string;
  /** PEM; absent means the system's authorities. */
  readonly certificateAuthority?: string;
  readonly clientCertificate?: string;
  readonly clientKey?: string;
  readonly token?: string;
  /** Wins over `token`, and is read again from time to time: such tokens are rotated. */
  readonly tokenFile?: string;
  /** The name that the server's certificate must have, where it is not the host of `server`. */
  readonly serverName?: string;
  readonly insecureSkipTlsVerify: boolean;
}

export class KubeconfigError extends Error {
  override name = 'KubeconfigError';
}

/** Reads a whole file as text; throws where it cannot. */
export type ReadFile = (path: string) => string;

export interface KubeconfigOptions {
  /** Instead of the current-context. */
  readonly context?: string;
  /** The kubeconfig's folder: relative file names start there. */
  readonly directory?: string;
  readonly readFile: ReadFile;
}

type Fields = Record<string, unknown>;

const MAX_YAML_ALIASES = 100;
const REFUSED_USER_FIELDS = [
  'exec',
  'auth-provider',
  'username',
  'password',
  'as',
  'as-uid',
  'as-groups',
  'as-user-extra',
];

export function loadKubeconfig(text: string, { context, directory = '.', readFile }: KubeconfigOptions): ClusterAccess {
  const config = parseConfig(text);
  const contextName = context ?? stringOf(config, 'current-context', 'the kubeconfig');
  if (contextName === undefined || contextName === '') {
    throw new KubeconfigError(
      'Cannot use the kubeconfig: no context is named; expected current-context or a --context',
    );
  }
  const chosen = named(config, 'contexts', contextName, 'context');
  const where = `context "${contextName}"`;
  const clusterName = required(stringOf(chosen, 'cluster', where), where, 'cluster');
  const userName = stringOf(chosen, 'user', where);
  const cluster = named(config, 'clusters', clusterName, 'cluster');
  const user = userName === undefined || userName === '' ? {} : named(config, 'users', userName, 'user');
  const files = { directory, readFile };
  return {
    ...clusterAccess(cluster, `cluster "${clusterName}"`, files),
    ...userAccess(user, `user "${userName}"`, files),
    namespace: stringOf(chosen, 'namespace', where) ?? 'default',
  };
}

export interface InClusterEnvironment {
  /** KUBERNETES_SERVICE_HOST. */
  readonly host: string | undefined;
  /** KUBERNETES_SERVICE_PORT. */
  readonly port: string | undefined;
}

const SERVICE_ACCOUNT = '/var/run/secrets/kubernetes.io/serviceaccount';

/** What Kubernetes gives to each pod: its service account's token, the CA and the namespace. */
export function inClusterAccess(readFile: ReadFile, { host, port }: InClusterEnvironment): ClusterAccess {
  if (!host || !port) {
    const names = 'KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT';
    throw new KubeconfigError(`Cannot reach the cluster from inside: ${names} are not set; expected both, as in a pod`);
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

function clusterAccess(cluster: Fields, where: string, files: Files): Omit<ClusterAccess, 'namespace'> {
  if (present(cluster['proxy-url'])) throw refused(where, 'proxy-url');
  const server = required(stringOf(cluster, 'server', where), where, 'server');
  if (!URL.canParse(server) || new URL(server).protocol !== 'https:') {
    throw new KubeconfigError(
      `Cannot use ${where} of the kubeconfig: its server is "${server}"; expected an https URL`,
    );
  }
  const insecure = cluster['insecure-skip-tls-verify'] === true;
  const certificateAuthority = pem(cluster, 'certificate-authority', where, files);
  if (insecure && certificateAuthority !== undefined) {
    const both = 'it has both a certificate-authority and insecure-skip-tls-verify';
    throw new KubeconfigError(`Cannot use ${where} of the kubeconfig: ${both}; expected one of them`);
  }
  return {
    server,
    certificateAuthority,
    serverName: stringOf(cluster, 'tls-server-name', where),
    insecureSkipTlsVerify: insecure,
  };
}

function userAccess(user: Fields, where: string, files: Files) {
  for (const field of REFUSED_USER_FIELDS) if (present(user[field])) throw refused(where, field);
  const clientCertificate = pem(user, 'client-certificate', where, files);
  const clientKey = pem(user, 'client-key', where, files);
  if ((clientCertificate === undefined) !== (clientKey === undefined)) {
    const message = 'it has only one of client-certificate and client-key; expected both or neither';
    throw new KubeconfigError(`Cannot use ${where} of the kubeconfig: ${message}`);
  }
  const tokenFile = stringOf(user, 'tokenFile', where);
  return {
    clientCertificate,
    clientKey,
    token: stringOf(user, 'token', where),
    tokenFile: tokenFile === undefined ? undefined : resolved(tokenFile, files.directory),
  };
}

/** `<field>-data` (base64) wins over the file `<field>`, as in client-go. */
function pem(fields: Fields, field: string, where: string, files: Files): string | undefined {
  const data = stringOf(fields, `${field}-data`, where);
  const file = stringOf(fields, field, where);
  if (!data) return file ? read(file, where, files) : undefined;
  const text = Buffer.from(data, 'base64').toString('utf8');
  if (text.includes('-----BEGIN')) return text;
  throw new KubeconfigError(`Cannot use ${where} of the kubeconfig: ${field}-data is not PEM in base64`);
}

function read(file: string, where: string, { directory, readFile }: Files): string {
  const path = resolved(file, directory);
  try {
    return readFile(path);
  } catch (cause) {
    throw new KubeconfigError(`Cannot read ${path}, which ${where} names: ${(cause as Error).message}`, { cause });
  }
}

function resolved(file: string, directory: string): string {
  return isAbsolute(file) ? file : join(directory, file);
}

function parseConfig(text: string): Fields {
  let config: unknown;
  try {
    config = parse(text, { maxAliasCount: MAX_YAML_ALIASES });
  } catch (cause) {
    throw new KubeconfigError(`Cannot read the kubeconfig: ${(cause as Error).message}`, { cause });
  }
  if (!isRecord(config)) throw new KubeconfigError('Cannot read the kubeconfig: it is not a map of fields');
  if (config['kind'] !== undefined && config['kind'] !== 'Config') {
    throw new KubeconfigError(
      `Cannot read the kubeconfig: its kind is ${JSON.stringify(config['kind'])}; expected Config`,
    );
  }
  return config;
}

/** The entry of `clusters`, `users` or `contexts` with that name. */
function named(config: Fields, list: string, name: string, what: string): Fields {
  const entries = (Array.isArray(config[list]) ? config[list] : []).filter(isRecord);
  const entry = entries.find((candidate) => candidate['name'] === name);
  const fields = entry?.[what];
  if (isRecord(fields)) return fields;
  // A user without any proof is written as an empty entry.
  if (entry !== undefined && !present(fields)) return {};
  const names = entries.map((candidate) => JSON.stringify(candidate['name']));
  const expected = names.length === 0 ? `there are no ${list}` : `expected one of ${names.join(', ')}`;
  throw new KubeconfigError(`Cannot use the kubeconfig: ${what} "${name}" does not exist; ${expected}`);
}

function stringOf(fields: Fields, field: string, where: string): string | undefined {
  const value = fields[field];
  if (!present(value)) return undefined;
  if (typeof value === 'string') return value;
  throw new KubeconfigError(`Cannot use the kubeconfig: ${field} of ${where} is not a string`);
}

function required(value: string | undefined, where: string, field: string): string {
  if (value !== undefined && value !== '') return value;
  throw new KubeconfigError(`Cannot use ${where} of the kubeconfig: it has no ${field}`);
}

function refused(where: string, field: string): KubeconfigError {
  const known = 'expected a client certificate, a token or a tokenFile';
  return new KubeconfigError(`Cannot use ${where} of the kubeconfig: ${field} is not supported; ${known}`);
}

function present(value: unknown): boolean {
  return value !== undefined && value !== null;
}
