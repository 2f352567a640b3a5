/**
 * Lists the interfaces and networks of an instance: those in its spec, or the default pod interface if there are none.
 * Pure.
 */
import type { Interface, Network } from '#api/domain/interface.ts';
import type { VmiSpec } from '#api/virtual-machine-instance/spec.ts';

const DEFAULT_NETWORK = 'default';

export function interfacesOf(spec: VmiSpec): readonly Interface[] {
  if (getsPodInterface(spec)) return [{ name: DEFAULT_NETWORK, masquerade: {} }];
  return spec.domain.devices?.interfaces ?? [];
}

export function networksOf(spec: VmiSpec): readonly Network[] {
  return getsPodInterface(spec) ? [{ name: DEFAULT_NETWORK, pod: {} }] : (spec.networks ?? []);
}

function getsPodInterface({ domain, networks = [] }: VmiSpec): boolean {
  const { interfaces = [], autoattachPodInterface } = domain.devices ?? {};
  return autoattachPodInterface !== false && interfaces.length === 0 && networks.length === 0;
}
