/** Configuration lists of CNI (1.0.0, and the older versions with the same results), from text to a checked value. Pure. */
import { isRecord } from '#kube/meta.ts';
import { isNestedDeeper } from '#lib/text/json-nesting.ts';

interface CniPluginConfig {
  /** A file name in a plugin directory. */
  readonly type: string;
  readonly capabilities?: Readonly<Record<string, unknown>>;
  readonly [field: string]: unknown;
}

export interface CniConfigList {
  readonly cniVersion: string;
  readonly name: string;
  readonly disableCheck?: boolean;
  readonly plugins: readonly CniPluginConfig[];
}

/** A configuration or an answer that is not valid, or a plugin that failed. The message names the plugin. */
export class CniError extends Error {
  override readonly name = 'CniError';
  /** True if a repetition gives the same error. */
  readonly permanent: boolean;

  /** True if the plugin is not installed. */
  readonly isMissing: boolean;

  constructor(message: string, options: { cause?: unknown; permanent?: boolean; isMissing?: boolean } = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.permanent = options.permanent ?? false;
    this.isMissing = options.isMissing ?? false;
  }
}

/** Those with `interfaces` and `ips` in their results. Older ones have no configuration lists. */
const VERSIONS = ['0.3.0', '0.3.1', '0.4.0', '1.0.0', '1.1.0'];
/** Versions without CHECK. */
const WITHOUT_CHECK: ReadonlySet<string> = new Set(['0.3.0', '0.3.1']);
const DEFAULT_VERSION = '1.0.0';
/** Newer lists are run with this version, the newest that all plugins of Debian 12 know. */
const NEWEST = '1.0.0';
const MAX_CONFIG_BYTES = 64 * 1024;
const MAX_PLUGINS = 16;
const MAX_DEPTH = 32;
const PLUGIN = /^[A-Za-z0-9_][A-Za-z0-9._-]{0,62}$/;
const NETWORK = /^[A-Za-z0-9][A-Za-z0-9_.-]{0,251}$/;

/** Parses a list, or a single plugin as a list of one. Throws a permanent CniError that says what is wrong. */
export function parseCniConfig(text: string, source: string): CniConfigList {
  const refuse = (problem: string) =>
    new CniError(`Cannot use the CNI configuration ${source}: ${problem}`, { permanent: true });
  if (text.length > MAX_CONFIG_BYTES) throw refuse(`it has more than ${MAX_CONFIG_BYTES} bytes`);
  if (isNestedDeeper(text, MAX_DEPTH)) throw refuse(`its values are nested deeper than ${MAX_DEPTH}`);
  const value = parseObject(text);
  if (value === undefined) throw refuse('it is not a JSON object');
  const { name, cniVersion = DEFAULT_VERSION, disableCheck } = value;
  if (typeof name !== 'string' || !NETWORK.test(name)) {
    throw refuse(`name is ${JSON.stringify(name)}; expected letters, digits, dots, dashes and underscores`);
  }
  if (typeof cniVersion !== 'string' || !VERSIONS.includes(cniVersion)) {
    throw refuse(`cniVersion is ${JSON.stringify(cniVersion)}; expected one of ${VERSIONS.join(', ')}`);
  }
  const plugins = value['plugins'] ?? (value['type'] === undefined ? undefined : [value]);
  if (!Array.isArray(plugins) || plugins.length === 0 || plugins.length > MAX_PLUGINS) {
    throw refuse(`plugins must be a list of 1 to ${MAX_PLUGINS} plugins`);
  }
  return {
    name,
    cniVersion: cniVersion === '1.1.0' ? NEWEST : cniVersion,
    ...((disableCheck === true || disableCheck === 'true') && { disableCheck: true }),
    plugins: plugins.map((plugin: unknown, index) => parsePlugin(plugin, index, refuse)),
  };
}

function parsePlugin(plugin: unknown, index: number, refuse: (problem: string) => CniError): CniPluginConfig {
  if (!isRecord(plugin)) throw refuse(`plugins[${index}] is not an object`);
  const { type, capabilities, ipam } = plugin;
  if (!isPluginName(type)) {
    throw refuse(`plugins[${index}].type is ${JSON.stringify(type)}; expected the name of a plugin, without a path`);
  }
  if (capabilities !== undefined && !isRecord(capabilities)) {
    throw refuse(`plugins[${index}].capabilities is not an object`);
  }
  if (isRecord(ipam) && ipam['type'] !== undefined && ipam['type'] !== '' && !isPluginName(ipam['type'])) {
    const found = JSON.stringify(ipam['type']);
    throw refuse(`plugins[${index}].ipam.type is ${found}; expected the name of a plugin, without a path`);
  }
  return plugin as CniPluginConfig;
}

function isPluginName(value: unknown): value is string {
  return typeof value === 'string' && PLUGIN.test(value);
}

/** Returns undefined if the text is not a JSON object. */
export function parseObject(text: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return isRecord(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

/** Reports whether the plugins of a list understand CHECK. */
export function canCheck({ cniVersion, disableCheck }: CniConfigList): boolean {
  return disableCheck !== true && !WITHOUT_CHECK.has(cniVersion);
}

/** Returns the configuration for one plugin, as it is sent to its standard input. */
export function pluginInput(
  { name, cniVersion }: CniConfigList,
  plugin: CniPluginConfig,
  { prevResult, capabilities }: { prevResult?: unknown; capabilities: Readonly<Record<string, unknown>> },
): string {
  const enabled = Object.entries(capabilities).filter(([capability]) => plugin.capabilities?.[capability] === true);
  return JSON.stringify({
    ...plugin,
    name,
    cniVersion,
    ...(enabled.length > 0 && { runtimeConfig: Object.fromEntries(enabled) }),
    ...(prevResult !== undefined && { prevResult }),
  });
}
