/** The result of a plugin chain: which interfaces it made, and which addresses they have. Pure. */
import { isRecord } from '#kube/meta.ts';
import { IpAddressError, parseInterfaceAddress, parseIpAddress, type IpAddress } from '#lib/ip-address.ts';
import { CniError } from '#node/network/linux/cni/cni-config.ts';

export interface CniResult {
  /** `sandbox` is the path of the namespace; absent for interfaces of the host. */
  readonly interfaces: readonly { readonly name: string; readonly mac?: string; readonly sandbox?: string }[];
  readonly ips: readonly {
    readonly address: IpAddress;
    readonly prefix: number;
    readonly gateway?: IpAddress;
    /** An index in `interfaces`. */
    readonly interface?: number;
  }[];
  /** The next hops of default routes. */
  readonly defaultGateways: readonly IpAddress[];
  readonly nameservers: readonly IpAddress[];
}

const MAX_ITEMS = 64;

/** Parses what the last plugin printed. Throws CniError. */
export function parseCniResult(value: unknown, plugin: string): CniResult {
  const fail = (problem: string, cause?: unknown) =>
    new CniError(`CNI plugin "${plugin}" printed a result that is not valid: ${problem}`, { cause });
  if (!isRecord(value)) throw fail('it is not a JSON object');
  const items = (field: string, from: Record<string, unknown> = value): Record<string, unknown>[] => {
    const list = from[field] ?? [];
    if (!Array.isArray(list) || list.length > MAX_ITEMS || !list.every(isRecord)) {
      throw fail(`${field} is not a list of at most ${MAX_ITEMS} objects`);
    }
    return list;
  };
  try {
    const ips = items('ips').map((ip) => ({
      ...parseInterfaceAddress(String(ip['address'])),
      ...optional('gateway', addressIn(ip['gateway'])),
      ...(typeof ip['interface'] === 'number' && { interface: ip['interface'] }),
    }));
    const interfaces = items('interfaces').map((entry) => ({
      name: String(entry['name']),
      ...optional('mac', textIn(entry['mac'])),
      ...optional('sandbox', textIn(entry['sandbox'])),
    }));
    const routes = items('routes').filter(({ dst }) => typeof dst === 'string' && /^(?:0\.0\.0\.0|::)\/0$/.test(dst));
    const gateways = routes.map(({ gw }) => addressIn(gw)).filter((gateway) => gateway !== undefined);
    const dns = isRecord(value['dns']) ? value['dns']['nameservers'] : undefined;
    const servers = Array.isArray(dns) ? dns.slice(0, MAX_ITEMS).map(addressIn) : [];
    return {
      interfaces,
      ips,
      // A default route without a next hop uses the gateway of the address.
      defaultGateways:
        gateways.length > 0 || routes.length === 0 ? gateways : ips.flatMap(({ gateway }) => gateway ?? []),
      nameservers: servers.filter((server) => server !== undefined),
    };
  } catch (error) {
    if (error instanceof IpAddressError) throw fail(error.message, error);
    throw error;
  }
}

function addressIn(value: unknown): IpAddress | undefined {
  const text = textIn(value);
  if (text === undefined) return undefined;
  const { family, value: bits } = parseIpAddress(text);
  return { family, value: bits };
}

function textIn(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined;
}

function optional<K extends string, V>(key: K, value: V | undefined): { readonly [name in K]?: V } {
  return value === undefined ? {} : ({ [key]: value } as { readonly [name in K]: V });
}
