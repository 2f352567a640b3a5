/** Finds the address of a node's kubelet in its status. Pure. */
import { isRecord } from '#kube/meta.ts';

export interface NodeEndpoint {
  readonly host: string;
  readonly port: number;
}

const KUBELET_PORT = 10_250;
const PREFERRED = ['InternalIP', 'Hostname'] as const;

/** Returns the reason as a string if there is none. */
export function findNodeEndpoint(status: unknown): NodeEndpoint | string {
  const { addresses, daemonEndpoints } = isRecord(status) ? status : {};
  const known = Array.isArray(addresses) ? addresses.filter(isRecord) : [];
  for (const type of PREFERRED) {
    const host = known.find((one) => one['type'] === type)?.['address'];
    if (typeof host === 'string' && host !== '') return { host, port: kubeletPort(daemonEndpoints) };
  }
  const shown = known.map(({ type, address }) => `{${String(type)} ${String(address)}}`).join(' ');
  return `no preferred addresses found; known addresses: [${shown}]`;
}

function kubeletPort(daemonEndpoints: unknown): number {
  const endpoint = isRecord(daemonEndpoints) ? daemonEndpoints['kubeletEndpoint'] : undefined;
  const port = isRecord(endpoint) ? endpoint['Port'] : undefined;
  return typeof port === 'number' && port > 0 ? port : KUBELET_PORT;
}
