/** Objects that the secondary networks of test VMs need. */
import type { Loose } from '#test/support/test-api.ts';

/** A NetworkAttachmentDefinition of a bridge with the same name. */
export function aNetworkDefinition(name: string, config: Loose = { type: 'bridge', bridge: name }): Loose {
  return {
    apiVersion: 'k8s.cni.cncf.io/v1',
    kind: 'NetworkAttachmentDefinition',
    metadata: { name },
    spec: { config: JSON.stringify({ cniVersion: '1.0.0', name, ...config }) },
  };
}

/** The default network. Guests with a pod network and others need it: without it they have no network namespace. */
export const GUEST_NETWORK: Loose = {
  apiVersion: 'network.selfsame.io/v1',
  kind: 'GuestNetwork',
  metadata: { name: 'default' },
  spec: { subnets: ['10.244.0.0/16'] },
};
