/**
 * The `exec` settings of a kubeconfig user: a program that prints a credential, as in client-go. This module reads the
 * settings and builds the program's input; exec-source.ts runs it and exec-output.ts reads its output.
 */
import { isAbsolute, join } from 'node:path';
import {
  isPresent,
  KubeconfigError,
  readBoolean,
  readList,
  readString,
  type KubeconfigFields,
} from '#client/kubeconfig-fields.ts';
import { isRecord } from '#kube/meta.ts';

const GROUP = 'client.authentication.k8s.io';
const API_VERSIONS = [`${GROUP}/v1`, `${GROUP}/v1beta1`];
const INTERACTIVE_MODES = ['Never', 'IfAvailable', 'Always'] as const;
/** The extension of a cluster that is passed to plugins. */
const CLUSTER_EXTENSION = `${GROUP}/exec`;

type InteractiveMode = (typeof INTERACTIVE_MODES)[number];

export interface ExecPlugin {
  readonly apiVersion: string;
  /** A name to find in PATH, or a path. */
  readonly command: string;
  readonly args: readonly string[];
  /** Variables in addition to those of this process. */
  readonly env: Readonly<Record<string, string>>;
  readonly interactiveMode: InteractiveMode;
  readonly installHint: string | undefined;
  /** Present if the plugin asks for it (provideClusterInfo). */
  readonly cluster: ExecCluster | undefined;
}

/** The cluster as client-go describes it to plugins. */
interface ExecCluster {
  readonly server: string;
  readonly 'tls-server-name'?: string;
  readonly 'insecure-skip-tls-verify'?: true;
  /** PEM in base64. */
  readonly 'certificate-authority-data'?: string;
  readonly 'disable-compression'?: true;
  readonly config: unknown;
}

/** The parts of a cluster that a plugin may ask for. */
export interface ClusterSettings {
  readonly server: string;
  readonly certificateAuthority?: string | undefined;
  readonly serverName?: string | undefined;
  readonly insecureSkipTlsVerify: boolean;
}

export interface ExecPluginContext {
  /** Names the user in errors, for example `user "admin"`. */
  readonly where: string;
  /** The directory of the kubeconfig. */
  readonly directory: string;
  readonly settings: ClusterSettings;
  /** The cluster's entry in the kubeconfig. */
  readonly clusterFields: KubeconfigFields;
}

/** Reads and checks the settings. Throws KubeconfigError. */
export function readExecPlugin(value: unknown, context: ExecPluginContext): ExecPlugin {
  const { where, directory } = context;
  const owner = `exec of ${where}`;
  if (!isRecord(value)) throw execError(where, 'it is not a map of fields');
  const command = readString(value, 'command', owner) ?? '';
  if (command === '') throw execError(where, 'it has no command');
  const apiVersion = readApiVersion(value, where);
  return {
    apiVersion,
    command: command.includes('/') && !isAbsolute(command) ? join(directory, command) : command,
    args: readList(value, 'args', owner).map((arg) => {
      if (typeof arg === 'string') return arg;
      throw execError(where, 'its args are not all strings; quote numbers and booleans');
    }),
    env: readEnvironment(value, where),
    interactiveMode: readInteractiveMode(value, apiVersion, where),
    installHint: readString(value, 'installHint', owner),
    cluster: readBoolean(value, 'provideClusterInfo', owner) ? buildExecCluster(context) : undefined,
  };
}

/** Returns the value of KUBERNETES_EXEC_INFO. */
export function buildExecInfo({ apiVersion, cluster }: ExecPlugin, interactive: boolean): string {
  const spec = { ...(cluster === undefined ? {} : { cluster }), interactive };
  return JSON.stringify({ kind: 'ExecCredential', apiVersion, spec });
}

function readApiVersion(fields: KubeconfigFields, where: string): string {
  const apiVersion = readString(fields, 'apiVersion', `exec of ${where}`) ?? '';
  if (API_VERSIONS.includes(apiVersion)) return apiVersion;
  const expected = `expected ${API_VERSIONS.join(' or ')}`;
  if (apiVersion === '') throw execError(where, `it has no apiVersion; ${expected}`);
  const hint = apiVersion === `${GROUP}/v1alpha1` ? '; update the plugin, and let it write the kubeconfig again' : '';
  throw execError(where, `its apiVersion is "${apiVersion}"; ${expected}${hint}`);
}

function readInteractiveMode(fields: KubeconfigFields, apiVersion: string, where: string): InteractiveMode {
  const text = readString(fields, 'interactiveMode', `exec of ${where}`) ?? '';
  // Only v1 requires it.
  if (text === '' && apiVersion.endsWith('/v1beta1')) return 'IfAvailable';
  const mode = INTERACTIVE_MODES.find((candidate) => candidate === text);
  if (mode !== undefined) return mode;
  const state = text === '' ? 'it has no interactiveMode' : `its interactiveMode is "${text}"`;
  throw execError(where, `${state}; expected one of ${INTERACTIVE_MODES.join(', ')}`);
}

function readEnvironment(fields: KubeconfigFields, where: string): Record<string, string> {
  const entries = readList(fields, 'env', `exec of ${where}`).map((entry): [string, string] => {
    const { name, value } = isRecord(entry) ? entry : {};
    const text = isPresent(value) ? value : '';
    if (typeof name === 'string' && name !== '' && typeof text === 'string') return [name, text];
    throw execError(where, 'an entry of its env is not a name and a value, both strings');
  });
  return Object.fromEntries(entries);
}

function buildExecCluster({ settings, clusterFields, where }: ExecPluginContext): ExecCluster {
  const { server, serverName, insecureSkipTlsVerify, certificateAuthority } = settings;
  const extensions = readList(clusterFields, 'extensions', `the cluster of ${where}`).filter(isRecord);
  const extension = extensions.find(({ name }) => name === CLUSTER_EXTENSION)?.['extension'];
  return {
    server,
    ...(serverName ? { 'tls-server-name': serverName } : {}),
    ...(insecureSkipTlsVerify ? { 'insecure-skip-tls-verify': true } : {}),
    ...(certificateAuthority
      ? { 'certificate-authority-data': Buffer.from(certificateAuthority).toString('base64') }
      : {}),
    ...(clusterFields['disable-compression'] === true ? { 'disable-compression': true } : {}),
    config: extension ?? null,
  };
}

function execError(where: string, problem: string): KubeconfigError {
  return new KubeconfigError(`Cannot use exec of ${where} of the kubeconfig: ${problem}`);
}
