/** Checks the annotation with which VMs and instances ask for addresses of the default network. Pure. */
import { networksOf } from '#api/devices/attached-interfaces.ts';
import { REQUESTED_ADDRESSES_ANNOTATION } from '#api/names.ts';
import { DEFAULT_NETWORK, type GuestNetwork } from '#api/network/guest-network.ts';
import { subnetsOf } from '#api/network/guest-subnets.ts';
import { networkAddressName, type NetworkAddress } from '#api/network/network-address.ts';
import { describeUnusable } from '#api/network/plan-addresses.ts';
import {
  parseRequestedAddress,
  parseRequestedAddresses,
  podInterfacesOf,
  REQUEST_EXAMPLE,
} from '#api/network/requested-addresses.ts';
import { findNewErrors } from '#api/validation/new-errors.ts';
import type { VirtualMachine } from '#api/virtual-machine/kind.ts';
import type { VirtualMachineInstance } from '#api/virtual-machine-instance/kind.ts';
import type { VmiSpec } from '#api/virtual-machine-instance/spec.ts';
import { forbiddenField, invalidValue, type FieldError } from '#kube/field-error.ts';
import { formatIpAddress, formatIpNetwork, IpAddressError, type IpAddress } from '#lib/ip-address.ts';

/** The network and its addresses, from caches: the launch of an instance checks them again. */
export interface AddressLookup {
  guestNetwork(): GuestNetwork | undefined;
  /** Returns the object of an address that is given away. */
  networkAddress(name: string): NetworkAddress | undefined;
}

/** One annotation, and the object that has it. */
interface Request {
  readonly text: string;
  readonly field: string;
  readonly spec: VmiSpec;
  readonly owner: { readonly namespace?: string | undefined; readonly name?: string | undefined };
}

const fieldIn = (metadata: string) => `${metadata}.annotations[${REQUESTED_ADDRESSES_ANNOTATION}]`;

/** Returns the errors that a write of a VM introduces. */
export function checkVmAddresses(
  vm: VirtualMachine,
  old: VirtualMachine | undefined,
  lookup: AddressLookup,
): FieldError[] {
  if (requestsOfVm(vm).length === 0) return [];
  return findNewErrors(vm, old, (one) => requestsOfVm(one).flatMap((request) => checkRequest(request, lookup)));
}

/** The annotation of an instance cannot be changed: its guest starts with these addresses. */
export function checkInstanceAddresses(
  vmi: VirtualMachineInstance,
  old: VirtualMachineInstance | undefined,
  lookup: AddressLookup,
): FieldError[] {
  const field = fieldIn('metadata');
  const text = vmi.metadata.annotations?.[REQUESTED_ADDRESSES_ANNOTATION];
  if (old !== undefined) {
    const isChanged = text !== old.metadata.annotations?.[REQUESTED_ADDRESSES_ANNOTATION];
    const why = 'cannot be changed on an instance; change it on the VirtualMachine and restart it';
    return isChanged ? [forbiddenField(field, why)] : [];
  }
  if (text === undefined || vmi.spec?.domain === undefined) return [];
  return checkRequest({ text, field, spec: vmi.spec, owner: vmi.metadata }, lookup);
}

/** Warns that the annotation has no effect, when it is set. */
export function addressWarnings(
  { metadata }: Pick<VirtualMachine, 'metadata'>,
  annotations: readonly (Readonly<Record<string, string>> | undefined)[],
  lookup: Pick<AddressLookup, 'guestNetwork'>,
): string[] {
  const isSet = annotations.some((one) => one?.[REQUESTED_ADDRESSES_ANNOTATION] !== undefined);
  if (!isSet || metadata.deletionTimestamp !== undefined || lookup.guestNetwork() !== undefined) return [];
  return [
    `annotation ${REQUESTED_ADDRESSES_ANNOTATION} has no effect: there is no GuestNetwork "${DEFAULT_NETWORK}" with addresses for guests`,
  ];
}

function requestsOfVm({ metadata, spec }: VirtualMachine): Request[] {
  const { template } = spec;
  if (template?.spec?.domain === undefined) return [];
  const owner = { namespace: metadata.namespace, name: metadata.name };
  const places = [
    { at: 'metadata', annotations: metadata.annotations },
    { at: 'spec.template.metadata', annotations: template.metadata?.annotations },
  ];
  return places.flatMap(({ at, annotations }) => {
    const text = annotations?.[REQUESTED_ADDRESSES_ANNOTATION];
    return text === undefined || template.spec === undefined
      ? []
      : [{ text, field: fieldIn(at), spec: template.spec, owner }];
  });
}

function checkRequest(request: Request, lookup: AddressLookup): FieldError[] {
  const { text, field, spec } = request;
  const requested = parseRequestedAddresses(text);
  if (typeof requested === 'string') return [invalidValue(field, shorten(text), requested)];
  const seen = new Map<string, string>();
  return Object.entries(requested).flatMap(([network, addresses]) => {
    const unknown = describeUnknownNetwork(spec, network);
    if (unknown !== undefined) return [invalidValue(field, network, unknown)];
    return checkNetwork(request, { network, addresses }, { lookup, seen });
  });
}

function describeUnknownNetwork(spec: VmiSpec, name: string): string | undefined {
  const known = podInterfacesOf(spec);
  if (known.includes(name)) return undefined;
  const names = known.map((one) => `"${one}"`).join(', ');
  const choice = known.length === 0 ? 'it has none on the pod network' : `those on the pod network are ${names}`;
  const exists = networksOf(spec).some((network) => network.name === name);
  return exists ? `is not on the pod network; ${choice}` : `is not a network of the VM; ${choice}`;
}

interface CheckState {
  readonly lookup: AddressLookup;
  /** Networks by the addresses that they ask for. */
  readonly seen: Map<string, string>;
}

function checkNetwork(
  { field, owner }: Request,
  { network, addresses }: { readonly network: string; readonly addresses: readonly string[] },
  { lookup, seen }: CheckState,
): FieldError[] {
  const families = new Map<number, string>();
  return addresses.flatMap((text) => {
    const problem = describeProblem(text, { network, families, seen, owner, lookup });
    return problem === undefined ? [] : [invalidValue(field, shorten(text), problem)];
  });
}

interface AddressState extends CheckState {
  readonly network: string;
  /** The addresses of this network so far, by family. */
  readonly families: Map<number, string>;
  readonly owner: Request['owner'];
}

/** Returns why the VM cannot have the address, or undefined if it can. */
function describeProblem(text: string, state: AddressState): string | undefined {
  const { network, families, seen } = state;
  let address: IpAddress;
  try {
    address = parseRequestedAddress(text);
  } catch (error) {
    if (!(error instanceof IpAddressError)) throw error;
    return `is not an IP address: ${error.problem}; expected one such as in ${REQUEST_EXAMPLE}`;
  }
  const canonical = formatIpAddress(address);
  const [same, twice] = [families.get(address.family), seen.get(canonical)];
  families.set(address.family, canonical);
  seen.set(canonical, network);
  if (same !== undefined) {
    return `network "${network}" already asks for ${same}; at most one address of each family is possible`;
  }
  if (twice !== undefined) return `network "${twice}" already asks for this address`;
  return describeUnavailable(text, address, state);
}

function describeUnavailable(
  text: string,
  address: IpAddress,
  { lookup, owner }: Pick<AddressState, 'lookup' | 'owner'>,
): string | undefined {
  const guestNetwork = lookup.guestNetwork();
  if (guestNetwork === undefined) return undefined;
  const subnets = subnetsOf(guestNetwork);
  const subnet = subnets.find((one) => one.address.family === address.family);
  if (subnet === undefined) {
    return `GuestNetwork "${DEFAULT_NETWORK}" has no IPv${address.family} subnet, only ${subnets.map(formatIpNetwork).join()}`;
  }
  const unusable = describeUnusable(subnet, address);
  if (unusable !== undefined) return unusable;
  const [, prefix] = text.split('/');
  if (prefix !== undefined && Number(prefix) !== subnet.prefix) {
    return `the prefix length must be that of subnet ${formatIpNetwork(subnet)}, or absent`;
  }
  return describeHolder(lookup.networkAddress(networkAddressName(address)), owner);
}

/** Names the owner only if it is in the same namespace: the user may not be allowed to see others. */
function describeHolder(held: NetworkAddress | undefined, { namespace, name }: Request['owner']): string | undefined {
  if (held === undefined) return undefined;
  const { kind, namespace: other, name: holder } = held.spec.owner;
  if (other !== namespace) return `belongs to a ${kind} in another namespace; ask for another address`;
  return holder === name ? undefined : `belongs to ${kind} "${holder}"; ask for another address`;
}

const SHOWN = 64;
const shorten = (text: string) => (text.length <= SHOWN ? text : `${text.slice(0, SHOWN)}…`);
