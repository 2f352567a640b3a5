/** Reads one Item of the hardware section, with defaults for missing values. */
import type { DeviceAddress, SpecParams } from '#api/devices/learned-device.ts';
import { parseAddressText } from '#formats/address-text.ts';
import type { Findings } from '#formats/findings.ts';
import { readSpecParams } from '#formats/ovf/spec-params.ts';
import { OWN } from '#formats/ovf/vocabulary.ts';
import { childNamed, type XmlElement } from '#lib/xml/xml.ts';
import { quoteText } from '#lib/text/quote-text.ts';

export interface OvfItem {
  readonly resourceType: number;
  readonly instanceId: string;
  /** For messages. */
  readonly label: string;
  /** Trimmed texts of elements by their local name, without empty ones. */
  readonly texts: ReadonlyMap<string, string>;
  /** Attributes of our own namespace. */
  readonly own: ReadonlyMap<string, string>;
  /** True if the Item has any element that describes a device (oVirt 3.1 and later). */
  readonly hasDevice: boolean;
  readonly address?: DeviceAddress;
  readonly bootOrder?: number;
  readonly plugged: boolean;
  readonly readonly: boolean;
  readonly specParams: SpecParams;
}

const DEVICE_BLOCK = ['Type', 'Device', 'BootOrder', 'IsPlugged', 'IsReadOnly', 'Alias', 'SpecParams'];

/** Elements that are read, here or by other readers, or that do not affect the machine. */
const KNOWN = new Set([
  ...DEVICE_BLOCK,
  ...['Address', 'AddressOnParent', 'AllocationUnits', 'AutomaticAllocation', 'Caption', 'Config', 'Connection'],
  ...['CoresPerSocket', 'Description', 'ElementName', 'HostResource', 'InstanceID', 'InstanceId', 'MACAddress', 'Name'],
  ...['Parent', 'ResourceSubType', 'ResourceType', 'VirtualQuantity', 'VirtualQuantityUnits', 'num_of_sockets'],
  ...['cpu_per_socket', 'threads_per_cpu', 'max_num_of_vcpus', 'num_of_cpus', 'Entry', 'Params', 'AddressEntries'],
  ...[
    'Template',
    'ApplicationList',
    'StorageId',
    'StoragePoolId',
    'CreationDate',
    'LastModified',
    'last_modified_date',
  ],
  ...['OtherResourceType', 'Linked', 'speed', 'SinglePciQxl', 'UsbPolicy', 'CustomProperties', 'LogicalName'],
]);

export function readItem(element: XmlElement, findings: Findings): OvfItem {
  const texts = new Map<string, string>();
  for (const { name, text, children } of element.children) {
    if (!KNOWN.has(name)) findings.addNote(`${name} of devices is not imported`);
    const value = children.length > 0 ? '' : text.trim();
    if (value !== '' && !texts.has(name)) texts.set(name, value);
  }
  const own = new Map(element.attributes.flatMap((a) => (a.namespace === OWN ? [[a.name, a.value] as const] : [])));
  const instanceId = texts.get('InstanceId') ?? texts.get('InstanceID') ?? '';
  const label = own.get('id') ?? texts.get('Caption') ?? texts.get('ElementName') ?? `the Item of line ${element.line}`;
  const specParams = readSpecParams(childNamed(element, 'SpecParams'));
  if (specParams === undefined) findings.addError(`${quoteText(label)}: a key of SpecParams appears twice`);
  const bootOrder = readNumber(texts, 'BootOrder', label, findings);
  if (texts.get('Linked') === 'false')
    findings.addNote(`${quoteText(label)}: the link is down in the file; it is up after the import`);
  if (texts.has('CustomProperties')) findings.addNote(`${quoteText(label)}: CustomProperties are not imported`);
  return {
    resourceType: readResourceType(texts.get('ResourceType'), label, findings),
    instanceId,
    label,
    texts,
    own,
    hasDevice: own.has('id') || DEVICE_BLOCK.some((name) => childNamed(element, name) !== undefined),
    ...readItemAddress(element, texts, label, findings),
    ...(bootOrder !== undefined && { bootOrder }),
    plugged: readFlag(texts, 'IsPlugged', true, label, findings),
    readonly: readFlag(texts, 'IsReadOnly', false, label, findings),
    specParams: specParams ?? {},
  };
}

function readResourceType(text: string | undefined, label: string, findings: Findings): number {
  const value = Number(text ?? Number.NaN);
  if (text !== undefined && Number.isSafeInteger(value) && value >= 0) return value;
  findings.addError(`${quoteText(label)}: the ResourceType ${quoteText(text ?? '')} is not a number`);
  return -1;
}

/** Ignores a bare number, which is the position of a controller on its parent. */
function readItemAddress(
  element: XmlElement,
  texts: ReadonlyMap<string, string>,
  label: string,
  findings: Findings,
): { address?: DeviceAddress } {
  const exact = childNamed(element, 'AddressEntries', OWN);
  if (exact !== undefined) {
    const map = readSpecParams(exact);
    if (map !== undefined && Object.values(map).every((value) => typeof value === 'string')) {
      return { address: map as DeviceAddress };
    }
    findings.addError(`${quoteText(label)}: the address cannot be read`);
    return {};
  }
  const text = texts.get('Address');
  if (text === undefined || /^[0-9]+$/.test(text)) return {};
  const address = parseAddressText(text);
  if (address === undefined || !text.includes('=')) {
    findings.addError(`${quoteText(label)}: ${quoteText(text)} is not an address`);
    return {};
  }
  return { address };
}

/** Returns a whole number of 0 or more, or undefined if it is absent. Anything else adds an error. */
export function readNumber(
  texts: ReadonlyMap<string, string>,
  key: string,
  label: string,
  findings: Findings,
): number | undefined {
  const text = texts.get(key);
  if (text === undefined) return undefined;
  if (/^[0-9]{1,15}$/.test(text)) return Number(text);
  findings.addError(`${quoteText(label)}: the ${key} ${quoteText(text)} is not a number`);
  return undefined;
}

function readFlag(
  texts: ReadonlyMap<string, string>,
  key: string,
  otherwise: boolean,
  label: string,
  findings: Findings,
): boolean {
  const text = texts.get(key)?.toLowerCase();
  if (text === undefined) return otherwise;
  if (text !== 'true' && text !== 'false')
    findings.addError(`${quoteText(label)}: ${key} is ${quoteText(text)}; expected true or false`);
  return text === 'true';
}
