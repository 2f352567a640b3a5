/** The CNI configuration of our own network, and what is known about an interface in it before any plugin runs. Pure. */
import { formatIpAddress, formatIpNetwork, networkContains } from '#lib/ip-address.ts';
import {
  parseAddresses,
  podMacOf,
  type InterfaceAddress,
  type InterfaceFacts,
} from '#node/network/linux/interface-plan.ts';
import type { CniConfigList } from '#node/network/linux/cni/cni-config.ts';
import type { NetworkPlan } from '#node/network/linux/network-plan.ts';
import { PodNetworkError, type TapRequest } from '#node/network/pod-networks.ts';

/** Throws a permanent PodNetworkError if the addresses do not belong to the network. */
export function defaultNetworkFacts(plan: NetworkPlan, { attachment }: TapRequest): InterfaceFacts {
  const { podInterface } = attachment;
  const refuse = (problem: string) =>
    new PodNetworkError(`Cannot connect interface "${podInterface}" to the default network: ${problem}`, {
      permanent: true,
    });
  const addresses = parseAddresses(attachment.addresses ?? [], podInterface);
  if (addresses.length === 0) throw refuse('its pod has no addresses');
  for (const { address, prefix } of addresses) {
    if (plan.subnets.some((subnet) => networkContains(subnet, address) && subnet.prefix === prefix)) continue;
    const subnets = plan.subnets.map(formatIpNetwork).join(', ');
    throw refuse(`${formatIpAddress(address)}/${prefix} is not in its subnets ${subnets}`);
  }
  const { gateways, mtu, gatewayMac } = plan;
  const taken = gateways.find(({ family, value }) =>
    addresses.some(({ address }) => address.family === family && address.value === value),
  );
  if (taken !== undefined) throw refuse(`${formatIpAddress(taken)} is the address of the gateway`);
  return { addresses, gateways, nameservers: gateways, mtu, gatewayMac };
}

/**
 * Returns the configuration for one interface. Its port is in the bridge that drops everything, so that nothing that the
 * plugin sends reaches anybody; activation moves it.
 */
export function defaultNetworkConfig(plan: NetworkPlan, tap: TapRequest, { addresses }: InterfaceFacts): CniConfigList {
  const isBridged = tap.attachment.binding === 'bridge';
  return {
    cniVersion: '1.0.0',
    name: plan.table,
    plugins: [
      {
        type: 'bridge',
        bridge: plan.silentBridge,
        isGateway: false,
        ipMasq: false,
        hairpinMode: false,
        mtu: plan.mtu,
        capabilities: { mac: true },
        ipam: isBridged ? {} : staticAddresses(plan, addresses),
      },
    ],
  };
}

export function defaultNetworkCapabilities(tap: TapRequest, { addresses }: InterfaceFacts): Record<string, unknown> {
  return { mac: podMacOf(tap, addresses) };
}

function staticAddresses({ gateways }: NetworkPlan, addresses: readonly InterfaceAddress[]): Record<string, unknown> {
  const families = new Set(addresses.map(({ address }) => address.family));
  return {
    type: 'static',
    addresses: addresses.map(({ address, prefix }) => ({ address: `${formatIpAddress(address)}/${prefix}` })),
    routes: gateways
      .filter(({ family }) => families.has(family))
      .map((gateway) => ({ dst: gateway.family === 4 ? '0.0.0.0/0' : '::/0', gw: formatIpAddress(gateway) })),
  };
}
