/**
 * Reads OVFs: of oVirt 3.0 (without device data), 3.1 to 3.6 and 4.x, our own, and those of other products as far as
 * they follow the standard. A file with contradictions is refused; notes name the parts that we do not support
 * (docs/ovf.md).
 */
import { chipsetOf, type Chipset } from '#api/devices/chipset.ts';
import { checkDescription } from '#formats/check-description.ts';
import { toMachineName } from '#formats/device-names.ts';
import { Findings, FileFormatError } from '#formats/findings.ts';
import type { FirmwareKind, MachineDescription, DescribedState } from '#formats/machine.ts';
import { addCloudInit } from '#formats/ovf/cloud-init.ts';
import { readLabels } from '#formats/ovf/labels.ts';
import { parseEnvelope, ownNotes, type Envelope } from '#formats/ovf/envelope.ts';
import { isBefore31, layOutOvirt } from '#formats/ovf/lay-out-ovirt.ts';
import { readOvfDevices } from '#formats/ovf/read-devices.ts';
import { readNumber, readItem, type OvfItem } from '#formats/ovf/read-item.ts';
import { readStorage, parseUnit, type OvfStorage } from '#formats/ovf/read-storage.ts';
import { BIOS_TYPES, OWN, RESOURCE } from '#formats/ovf/vocabulary.ts';
import { attributeOf, childrenNamed, parseXml, type XmlElement } from '#lib/xml/xml.ts';
import { XmlError } from '#lib/xml/xml-scan.ts';
import { quoteText } from '#lib/text/quote-text.ts';

const ACTION = 'read OVF';
const MAX_ITEMS = 2048;
const MIB = 1024 ** 2;
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;
const FIRMWARES: readonly FirmwareKind[] = ['bios', 'efi', 'efi-secure'];

/** Throws a FileFormatError with all errors of the file. */
export function readOvf(input: Uint8Array | string): MachineDescription {
  const findings = new Findings();
  const envelope = parseEnvelope(parseRoot(input), findings);
  findings.throwIfErrors(ACTION);
  if (envelope === undefined) throw new FileFormatError(ACTION, ['it contains no machine']);
  const items = readItems(envelope, findings);
  const machine = readMachine(envelope, items, findings);
  for (const error of checkDescription(machine)) findings.addError(error);
  findings.throwIfErrors(ACTION);
  return { ...machine, notes: [...ownNotes(envelope), ...findings.notes] };
}

function parseRoot(input: Uint8Array | string): XmlElement {
  try {
    return parseXml(input);
  } catch (cause) {
    if (!(cause instanceof XmlError)) throw cause;
    throw new FileFormatError(ACTION, [cause.message.replace(/^Cannot read XML: /, '')], { cause });
  }
}

function readItems({ hardware, product, version }: Envelope, findings: Findings): OvfItem[] {
  const elements = (hardware?.children ?? []).filter(({ name }) => /^(?:Storage|EthernetPort)?Item$/.test(name));
  if (elements.length > MAX_ITEMS) findings.addError(`there are ${elements.length} devices, more than ${MAX_ITEMS}`);
  const items = elements.slice(0, MAX_ITEMS).map((element) => readItem(element, findings));
  if (product !== 'oVirt' || !isBefore31(version) || !items.some(({ hasDevice }) => hasDevice)) return items;
  findings.addNote(`OVFs of version ${version} have no device data; that of this file is not imported`);
  return items.map(({ resourceType, instanceId, label, texts, own }) => ({
    ...{
      resourceType,
      instanceId,
      label,
      texts,
      own,
      hasDevice: false,
      plugged: true,
      readonly: false,
      specParams: {},
    },
  }));
}

function readMachine(envelope: Envelope, items: readonly OvfItem[], findings: Findings): MachineDescription {
  const { system, settings, product, version } = envelope;
  const text = (word: string) => settings.get(word)?.text.trim() || undefined;
  const machineType = text('customemulatedmachine');
  const { chipset, firmware } = readBoard(envelope, machineType, findings);
  const storage = readStorage(envelope, findings);
  const devices = layOutOvirt(readOvfDevices(envelope, items, storage, chipset, findings), envelope, chipset, findings);
  const uuid = readUuid(envelope);
  const hostname = attributeOf(system, 'hostname', OWN);
  const serial = readSerial(envelope, uuid, findings);
  return {
    name: toMachineName(text('name') ?? attributeOf(system, 'id') ?? '', findings),
    ...(uuid !== undefined && { uuid }),
    ...(serial !== undefined && { serial }),
    ...(machineType !== undefined && { machineType }),
    ...(chipset !== undefined && { chipset }),
    cpu: { ...readCpu(items, findings), ...readCpuModel(text('customcpuname'), product, findings) },
    memoryMib: readMemory(items, findings),
    firmware,
    tpm: devices.rows.some(({ type }) => type === 'tpm'),
    ...readState(envelope, storage, findings),
    ...devices,
    disks: addCloudInit(devices.disks, system, findings),
    ...(hostname !== undefined && { hostname }),
    ...readLabels(system, findings),
    source: { format: 'ovf', ...(product !== undefined && { product }), ...(version !== undefined && { version }) },
    notes: [],
  };
}

/** Returns the uuid of the machine. oVirt stores it at the operating system, its OVAs at the system itself. */
function readUuid({ operatingSystem, system }: Envelope): string | undefined {
  return [attributeOf(operatingSystem, 'id'), attributeOf(system, 'id')].find(
    (id) => id !== undefined && UUID.test(id),
  );
}

function readSerial({ settings }: Envelope, uuid: string | undefined, findings: Findings): string | undefined {
  const policy = settings.get('serialnumberpolicy')?.text.trim();
  const custom = settings.get('customserialnumber')?.text;
  if (policy === '1') return uuid;
  if (policy === '0')
    findings.addNote('the serial of the machine was that of its host, which the file does not contain');
  return custom === '' ? undefined : custom;
}

function readBoard(
  { settings, system, product }: Envelope,
  machineType: string | undefined,
  findings: Findings,
): { chipset?: Chipset; firmware: FirmwareKind } {
  if (product === undefined) return { firmware: readVmwareFirmware(system) };
  const text = settings.get('biostype')?.text.trim();
  const biosType = BIOS_TYPES[Number(text ?? 0)];
  if (biosType === undefined) findings.addError(`the BiosType ${quoteText(text ?? '')} is unknown`);
  if (product === 'Selfsame') {
    const own = attributeOf(system, 'chipset', OWN);
    const chipset = own === 'q35' || own === 'i440fx' ? own : undefined;
    const firmware = FIRMWARES.find((word) => word === attributeOf(system, 'firmware', OWN));
    return { ...(chipset !== undefined && { chipset }), firmware: firmware ?? biosType?.firmware ?? 'bios' };
  }
  return { chipset: chipsetOf(machineType) ?? biosType?.chipset, firmware: biosType?.firmware ?? 'bios' };
}

/** Reads VMware's key for the firmware; the standard has none. */
function readVmwareFirmware(system: XmlElement): FirmwareKind {
  const configs = system.children.flatMap((section) => childrenNamed(section, 'Config'));
  const firmware = configs.find((config) => attributeOf(config, 'key') === 'firmware');
  return attributeOf(firmware, 'value') === 'efi' ? 'efi' : 'bios';
}

function readCpuModel(text: string | undefined, product: Envelope['product'], findings: Findings): { model?: string } {
  if (text === undefined) return {};
  if (product === 'Selfsame') return { model: text };
  findings.addNote(`the CPU model ${quoteText(text)} is not imported`);
  return {};
}

function findSingleItem(
  items: readonly OvfItem[],
  type: number,
  what: string,
  findings: Findings,
): OvfItem | undefined {
  const found = items.filter(({ resourceType }) => resourceType === type);
  if (found.length !== 1) findings.addError(`there are ${found.length} Items of ${what}; expected one`);
  return found[0];
}

function readCpu(items: readonly OvfItem[], findings: Findings): { sockets: number; cores: number; threads: number } {
  const item = findSingleItem(items, RESOURCE.cpu, 'CPUs', findings);
  if (item === undefined) return { sockets: 1, cores: 1, threads: 1 };
  const read = (key: string) => readNumber(item.texts, key, item.label, findings);
  const quantity = read('VirtualQuantity');
  const threads = read('threads_per_cpu') ?? 1;
  const cores = read('cpu_per_socket') ?? read('CoresPerSocket') ?? 1;
  const sockets = read('num_of_sockets') ?? Math.max(1, (quantity ?? 1) / Math.max(1, cores * threads));
  const all = sockets * cores;
  if (quantity !== undefined && quantity !== all && quantity !== all * threads) {
    findings.addError(`there are ${quantity} CPUs, but ${sockets} sockets of ${cores} cores`);
  }
  return { sockets, cores, threads };
}

function readMemory(items: readonly OvfItem[], findings: Findings): number {
  const item = findSingleItem(items, RESOURCE.memory, 'memory', findings);
  if (item === undefined) return 1;
  const unit = parseUnit(item.texts.get('AllocationUnits') ?? 'MegaBytes');
  if (unit === undefined)
    findings.addError(`the unit of memory ${quoteText(item.texts.get('AllocationUnits') ?? '')} is unknown`);
  const quantity = readNumber(item.texts, 'VirtualQuantity', item.label, findings);
  if (quantity === undefined) findings.addError('the memory size is missing');
  return Math.floor(((quantity ?? 1) * (unit ?? MIB)) / MIB);
}

/** Reads the persistent state: an element of our own namespace, which only our own OVFs have. */
function readState(
  { system }: Envelope,
  { files }: OvfStorage,
  findings: Findings,
): { readonly state?: DescribedState } {
  const [element, ...others] = childrenNamed(system, 'State', OWN);
  if (element === undefined) return {};
  if (others.length > 0) findings.addError('the persistent state appears twice');
  const is = (name: string) => attributeOf(element, name, OWN) === 'true';
  const reference = attributeOf(element, 'fileRef', OWN);
  const file = reference === undefined ? undefined : files.find(({ id }) => id === reference);
  if (reference !== undefined && file === undefined) {
    findings.addError(`the persistent state is in the file ${quoteText(reference)}, which is missing`);
  }
  return {
    state: {
      tpm: is('tpm'),
      efi: is('efi'),
      ...(file !== undefined && { file: file.href }),
      ...(file?.sizeBytes !== undefined && { sizeBytes: file.sizeBytes }),
    },
  };
}
