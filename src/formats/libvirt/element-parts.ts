/** What every device of a domain may have: an address, an order to boot, an alias that is ours. Pure. */
import type { DeviceAddress } from '#api/learned-device.ts';
import { isDeviceId } from '#formats/device-rows.ts';
import { attributeOf, childNamed, type XmlElement } from '#lib/xml.ts';

/** Aliases that users may set begin so; ours are our device ids, oVirt's are uuids. */
export const USER_ALIAS = 'ua-';
const UUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

/** Attributes as they are. Undefined where there is none, or where libvirt is to choose. */
export function addressOf(element: XmlElement): DeviceAddress | undefined {
  const address = childNamed(element, 'address');
  if (address === undefined || attributeOf(address, 'type') === 'unassigned') return undefined;
  return Object.fromEntries(address.attributes.map(({ name, value }) => [name, value]));
}

/** Anything but a number is a fault of the order, which the checks find: it is then 0.5, which no order is. */
export function bootOrderOf(element: XmlElement): number | undefined {
  const text = attributeOf(childNamed(element, 'boot'), 'order');
  if (text === undefined) return undefined;
  return /^[0-9]{1,6}$/.test(text) ? Number(text) : 0.5;
}

export function ownId(element: XmlElement): string | undefined {
  const alias = attributeOf(childNamed(element, 'alias'), 'name') ?? '';
  const id = alias.startsWith(USER_ALIAS) ? alias.slice(USER_ALIAS.length) : '';
  return isDeviceId(id) && !UUID.test(id) ? id : undefined;
}
