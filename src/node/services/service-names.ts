/** Builds the DNS records of Services as hosts files, one for each Service. Pure. */
import type { RoutedService, RoutedSlice } from '#node/services/kinds.ts';
import { isAddress, isLoopback } from '#node/services/service-forwards.ts';
import { nameErrors } from '#kube/names.ts';
import type { Stored } from '#kube/meta.ts';

/** The domain of Services, as in Kubernetes. */
const SERVICE_DOMAIN = 'svc.cluster.local';
const MAX_RECORDS = 1000;

interface NamedServices {
  readonly services: readonly Stored<RoutedService>[];
  slicesOf(namespace: string, name: string): readonly RoutedSlice[];
}

/**
 * Returns the content of the files by name. Services without addresses have no file. A headless Service has the addresses
 * of its ready endpoints, and a name for each of them that has a hostname.
 */
export function buildHostsFiles({ services, slicesOf }: NamedServices): Map<string, string> {
  const files = new Map<string, string>();
  for (const { metadata, spec = {} } of services) {
    const { namespace = '', name } = metadata;
    if (spec.type === 'ExternalName' || !isDnsLabel(namespace) || !isDnsLabel(name)) continue;
    const domain = `${name}.${namespace}.${SERVICE_DOMAIN}`;
    const clusterIps = spec.clusterIPs ?? (spec.clusterIP ? [spec.clusterIP] : []);
    const records =
      clusterIps[0] === 'None'
        ? headlessRecords(domain, slicesOf(namespace, name))
        : clusterIps.filter(isAddress).map((ip) => `${ip} ${domain}`);
    if (records.length > 0) files.set(`${namespace}.${name}`, `${records.slice(0, MAX_RECORDS).join('\n')}\n`);
  }
  return files;
}

function headlessRecords(domain: string, slices: readonly RoutedSlice[]): string[] {
  const ready = slices
    .filter(({ addressType }) => addressType !== 'FQDN')
    .flatMap(({ endpoints = [] }) => endpoints)
    .filter(({ conditions }) => conditions?.ready !== false);
  const records = ready.flatMap(({ addresses: [ip = ''], hostname = '' }) => {
    if (!isAddress(ip) || isLoopback(ip)) return [];
    return isDnsLabel(hostname) ? [`${ip} ${hostname}.${domain}`, `${ip} ${domain}`] : [`${ip} ${domain}`];
  });
  return [...new Set(records)].sort();
}

const isDnsLabel = (name: string): boolean => name !== '' && nameErrors('label', name).length === 0;
