/** Reads the parts that every device of a domain can have: address, boot order, our own id as alias. Pure. */
import type { DeviceAddress } from '#api/devices/learned-device.ts';
import { isDeviceId } from '#formats/device-rows.ts';
import { attributeOf, childNamed, type XmlElement } from '#lib/xml/xml.ts';

/** The prefix of aliases that users may set. Ours are our device ids, oVirt's are uuids. */
export const USER_ALIAS = 'ua-';
const UUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

/** Returns the attributes of the address unchanged, or undefined if libvirt is to choose it. */
export function readElementAddress(element: XmlElement): DeviceAddress | undefined {
  const address = childNamed(element, 'address');
  if (address === undefined || attributeOf(address, 'type') === 'unassigned') return undefined;
  return Object.fromEntries(address.attributes.map(({ name, value }) => [name, value]));
}

/** Returns 0.5 for a text that is not a number, so that checkDescription reports an invalid boot order. */
export function readElementBootOrder(element: XmlElement): number | undefined {
  const text = attributeOf(childNamed(element, 'boot'), 'order');
  if (text === undefined) return undefined;
  return /^[0-9]{1,6}$/.test(text) ? Number(text) : 0.5;
}

export function readOwnId(element: XmlElement): string | undefined {
  const alias = attributeOf(childNamed(element, 'alias'), 'name') ?? '';
  const id = alias.startsWith(USER_ALIAS) ? alias.slice(USER_ALIAS.length) : '';
  return isDeviceId(id) && !UUID.test(id) ? id : undefined;
}
