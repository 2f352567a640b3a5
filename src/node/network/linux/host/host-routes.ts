/** The routes of the host. */
import { parseInterfaceAddress, parseIpAddress, bitsOf, type IpNetwork } from '#lib/ip-address.ts';
import type { RunOnHost } from '#node/network/linux/host/host-commands.ts';

export interface HostRoute {
  readonly destination: IpNetwork;
  readonly device: string;
}

/** Routes that lead nowhere; a more specific route, such as that of our bridge, wins against them. */
const WITHOUT_DESTINATION = new Set(['blackhole', 'unreachable', 'prohibit', 'throw']);

/** Reads the routes of all tables, addresses of the host and default routes included. */
export async function readRoutes(run: RunOnHost): Promise<HostRoute[]> {
  const families = [4, 6] as const;
  const texts = await Promise.all(
    families.map((family) => run('ip', ['-j', `-${family}`, 'route', 'show', 'table', 'all'])),
  );
  return families.flatMap((family, i) => parseRoutes(texts[i] ?? '', family));
}

/** Parses the output of `ip -j route`. Ignores multicast and what leads nowhere. */
export function parseRoutes(text: string, family: 4 | 6): HostRoute[] {
  const rows = text.trim() === '' ? [] : (JSON.parse(text) as Record<string, unknown>[]);
  return rows.flatMap(({ type, dst, dev, nexthops }) => {
    if (typeof type === 'string' && (WITHOUT_DESTINATION.has(type) || type === 'multicast')) return [];
    const destination = parseDestination(String(dst), family);
    const hops = Array.isArray(nexthops) ? (nexthops as { dev?: unknown }[]).map((hop) => hop.dev) : [];
    return [dev, ...hops].filter((device) => typeof device === 'string').map((device) => ({ destination, device }));
  });
}

function parseDestination(text: string, family: 4 | 6): IpNetwork {
  if (text === 'default') return { address: { family, value: 0n }, prefix: 0 };
  if (text.includes('/')) return parseInterfaceAddress(text);
  const { value } = parseIpAddress(text);
  return { address: { family, value }, prefix: bitsOf(family) };
}

const LINK_LOCAL_6 = 0xfe80n << 112n;
const MULTICAST_6 = 0xffn << 120n;

/** Returns the interfaces with routes of this family that lead further than the link. */
export function devicesOutside(routes: readonly HostRoute[], family: 4 | 6, own: readonly string[]): string[] {
  const devices = routes
    .filter(({ destination: { address } }) => address.family === family)
    .filter(({ destination: { address } }) => address.value !== LINK_LOCAL_6 && address.value !== MULTICAST_6)
    .filter(({ destination: { address, prefix } }) => !(family === 6 && prefix === 128 && isLinkLocal(address.value)))
    .map(({ device }) => device);
  return [...new Set(devices)].filter((device) => device !== 'lo' && !own.includes(device)).sort();
}

const isLinkLocal = (value: bigint) => value >> 118n === LINK_LOCAL_6 >> 118n;
