/** Predicts the addresses on the default network that change at the next start of a VM. Pure. */
import type { Difference } from '#api/identity/identity-last-seen.ts';
import { REQUESTED_ADDRESSES_ANNOTATION } from '#api/names.ts';
import type { GuestNetwork } from '#api/network/guest-network.ts';
import { subnetsOf } from '#api/network/guest-subnets.ts';
import { nextAddressesOf } from '#api/network/owned-addresses.ts';
import { parseIfValid, podInterfacesOf, requestedOfFamily } from '#api/network/requested-addresses.ts';
import type { VirtualMachine } from '#api/virtual-machine/kind.ts';
import type { IdentitySpec } from '#api/virtual-machine-identity/kind.ts';
import { formatIpAddress, formatIpNetwork, type IpNetwork } from '#lib/ip-address.ts';

const NONE = 'none';

/** Returns the differences between the recorded addresses and those of the next start; none without a network. */
export function addressDifferences(
  vm: VirtualMachine,
  recorded: IdentitySpec,
  network: GuestNetwork | undefined,
): Difference[] {
  if (network === undefined) return [];
  const next = nextAddressesOf(vm, recorded, network);
  const known = new Map(recorded.interfaces?.map(({ name, addresses = [] }) => [name, addresses]));
  return podInterfacesOf(vm.spec.template.spec ?? { domain: {} }).flatMap((nic) =>
    subnetsOf(network).flatMap((subnet) => compare(nic, subnet, known.get(nic) ?? [], next.get(nic) ?? [])),
  );
}

function compare(nic: string, subnet: IpNetwork, known: readonly string[], next: readonly string[]): Difference[] {
  const { family } = subnet.address;
  const from = known.find((text) => parseIfValid(text)?.family === family) ?? NONE;
  const wanted = requestedOfFamily(next, family);
  const what = `address of nic-${nic}`;
  if (wanted === undefined) {
    const to = `one of ${formatIpNetwork(subnet)}, assigned at the start`;
    const why =
      from === NONE
        ? 'the VM has no address there yet'
        : 'the recorded address is outside of the GuestNetwork "default"';
    return [{ what, from, to, why }];
  }
  const to = formatIpAddress(wanted);
  return to === from ? [] : [{ what, from, to, why: `the annotation ${REQUESTED_ADDRESSES_ANNOTATION} asks for it` }];
}
