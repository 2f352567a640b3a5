/**
 * The annotation with which users ask for addresses, on VMs, their templates and instances: a JSON object with a list of
 * addresses for each network, with or without a prefix length: {"default":["10.244.0.9","fd00:10:244::9/64"]}. Pure.
 */
import { interfacesOf, networksOf } from '#api/devices/attached-interfaces.ts';
import { REQUESTED_ADDRESSES_ANNOTATION } from '#api/names.ts';
import type { VirtualMachine } from '#api/virtual-machine/kind.ts';
import type { VmiSpec } from '#api/virtual-machine-instance/spec.ts';
import { isRecord } from '#kube/meta.ts';
import { IpAddressError, parseInterfaceAddress, parseIpAddress, type IpAddress } from '#lib/ip-address.ts';

/** Addresses by the name of the network, which is also that of the interface. */
export type RequestedAddresses = Readonly<Record<string, readonly string[]>>;

/** An example for messages. */
export const REQUEST_EXAMPLE = '{"default":["10.244.0.9"]}';

/** The longest annotation that is parsed. */
const MAX_TEXT = 16_384;

/** Returns the addresses, or a sentence that says what is wrong with the text. */
export function parseRequestedAddresses(text: string): RequestedAddresses | string {
  if (text.length > MAX_TEXT) return `must have at most ${MAX_TEXT} characters`;
  const shape = `must be a JSON object with a list of addresses for each network, such as ${REQUEST_EXAMPLE}`;
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return shape;
  }
  if (!isRecord(value) || !Object.values(value).every(isTextList)) return shape;
  return value as RequestedAddresses;
}

/** Returns the addresses that annotations ask for; none if the annotation is absent or not valid. */
export function requestedAddressesIn(annotations: unknown): RequestedAddresses {
  const text = isRecord(annotations) ? annotations[REQUESTED_ADDRESSES_ANNOTATION] : undefined;
  const parsed = typeof text === 'string' ? parseRequestedAddresses(text) : {};
  return typeof parsed === 'string' ? {} : parsed;
}

/** Returns the addresses that a VM asks for. Those of its template take precedence over those of its metadata. */
export function requestedAddressesOf({ metadata, spec }: VirtualMachine): RequestedAddresses {
  return {
    ...requestedAddressesIn(metadata.annotations),
    ...requestedAddressesIn(spec.template.metadata?.annotations),
  };
}

export function formatRequestedAddresses(addresses: RequestedAddresses): string {
  return JSON.stringify(addresses);
}

/** Parses an address with or without a prefix length. Throws IpAddressError. */
export function parseRequestedAddress(text: string): IpAddress {
  if (text.includes('/')) return parseInterfaceAddress(text).address;
  const { family, value, zone } = parseIpAddress(text);
  if (zone !== '') throw new IpAddressError(text, 'zones are not allowed');
  return { family, value };
}

/** Returns the address of one family, or undefined if there is none that is valid. */
export function requestedOfFamily(texts: readonly string[], family: 4 | 6): IpAddress | undefined {
  for (const text of texts) {
    const address = parseIfValid(text);
    if (address?.family === family) return address;
  }
  return undefined;
}

/** Parses an address with or without a prefix length; returns undefined if it is not one. */
export function parseIfValid(text: string): IpAddress | undefined {
  try {
    return parseRequestedAddress(text);
  } catch (error) {
    if (error instanceof IpAddressError) return undefined;
    throw error;
  }
}

/** Returns the names of the interfaces on the pod network, also of those that are unplugged (`state: absent`). */
export function podInterfacesOf(spec: VmiSpec): string[] {
  const pods = new Set(networksOf(spec).flatMap(({ name, pod }) => (pod === undefined ? [] : [name])));
  return interfacesOf(spec).flatMap(({ name }) => (pods.has(name) ? [name] : []));
}

function isTextList(value: unknown): boolean {
  return Array.isArray(value) && value.every((entry) => typeof entry === 'string');
}
