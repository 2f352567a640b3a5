/**
 * The CNI configuration of a NetworkAttachmentDefinition. Administrators write it; it is only checked as far as needed to
 * pass it on: its size, its form, and that plugins are named without a path. Plugins check the rest. Pure.
 */
import { isRecord } from '#kube/meta.ts';
import { isNestedDeeper } from '#lib/text/json-nesting.ts';

type ConfigResult = { readonly config: string } | { readonly problem: string };

const MAX_CONFIG_BYTES = 64 * 1024;
const MAX_PLUGINS = 16;
const MAX_DEPTH = 32;
/** The default of the plugin. */
const PLUGIN_BRIDGE = 'cni0';
const DEFAULT_VERSION = '1.0.0';
const PLUGIN = /^[A-Za-z0-9_][A-Za-z0-9._-]{0,62}$/;

/** Returns a configuration list as JSON, also for a single plugin; `name` is used if the configuration has none. */
export function readDefinitionConfig(text: string, name: string): ConfigResult {
  if (text.trim() === '') return { problem: 'spec.config is empty; expected a CNI configuration as JSON' };
  const size = new TextEncoder().encode(text).byteLength;
  if (size > MAX_CONFIG_BYTES) {
    return { problem: `spec.config has ${size} bytes; expected at most ${MAX_CONFIG_BYTES}` };
  }
  if (isNestedDeeper(text, MAX_DEPTH)) return { problem: `spec.config is nested deeper than ${MAX_DEPTH} levels` };
  const value = parseObject(text);
  if (value === undefined) return { problem: 'spec.config is not a JSON object' };
  const { cniVersion = DEFAULT_VERSION, name: ownName = name, plugins, ...rest } = value;
  const list: unknown = plugins ?? (value['type'] === undefined ? undefined : [rest]);
  if (!Array.isArray(list) || list.length === 0 || list.length > MAX_PLUGINS) {
    return { problem: `spec.config has no plugin; expected "type", or "plugins" with 1 to ${MAX_PLUGINS} plugins` };
  }
  const problem = list.map(findPluginProblem).find((found) => found !== undefined);
  if (problem !== undefined) return { problem: `spec.config: ${problem}` };
  const shared = plugins === undefined ? {} : rest;
  return { config: JSON.stringify({ ...shared, cniVersion, name: ownName, plugins: list }) };
}

/** A bridge of the host that a configuration list connects guests with. */
interface HostBridge {
  readonly name: string;
  /** True if the plugin gives the bridge an address, and therefore creates it. */
  readonly isGateway: boolean;
  /** The VLAN of the guests; undefined: the same as that of the host. */
  readonly vlan?: number;
}

/** Returns the bridges that the `bridge` plugins of a configuration list name. */
export function hostBridgesIn(config: string): HostBridge[] {
  const list = parseObject(config)?.['plugins'];
  const plugins = Array.isArray(list) ? list.filter(isRecord) : [];
  return plugins
    .filter(({ type }) => type === 'bridge')
    .map(({ bridge, isGateway, isDefaultGateway, ipMasq, vlan }) => ({
      name: typeof bridge === 'string' && bridge !== '' ? bridge : PLUGIN_BRIDGE,
      isGateway: isGateway === true || isDefaultGateway === true || ipMasq === true,
      ...(typeof vlan === 'number' && vlan !== 0 && { vlan }),
    }));
}

function findPluginProblem(plugin: unknown): string | undefined {
  if (!isRecord(plugin)) return 'a plugin is not an object';
  const { type, ipam } = plugin;
  if (!isPluginName(type)) return unexpectedName('type', type);
  if (!isRecord(ipam) || ipam['type'] === undefined || ipam['type'] === '') return undefined;
  return isPluginName(ipam['type']) ? undefined : unexpectedName('ipam.type', ipam['type']);
}

function unexpectedName(field: string, value: unknown): string {
  const text = (JSON.stringify(value) ?? 'missing').slice(0, 100);
  return `${field} is ${text}; expected the name of a plugin such as "bridge", without a path`;
}

function isPluginName(value: unknown): value is string {
  return typeof value === 'string' && PLUGIN.test(value);
}

function parseObject(text: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return isRecord(value) ? value : undefined;
  } catch {
    return undefined;
  }
}
