/**
 * OVF in: of oVirt 3.0 (no device data), 3.1 to 3.6 and 4.x, of ours, and of others as far as the standard goes. Refused
 * whole where it contradicts itself; what it says and we do not have is in the notes (docs/ovf.md).
 */
import { chipsetOf, type Chipset } from '#api/chipset.ts';
import { machineFaults } from '#formats/check-machine.ts';
import { machineNameOf } from '#formats/device-names.ts';
import { Findings, FormatError, quoted } from '#formats/faults.ts';
import type { FirmwareKind, MachineDescription } from '#formats/machine.ts';
import { openEnvelope, ownNotes, type Envelope } from '#formats/ovf/envelope.ts';
import { isBefore31, layOutOvirt } from '#formats/ovf/lay-out-ovirt.ts';
import { readDevices } from '#formats/ovf/read-devices.ts';
import { numberIn, readItem, type OvfItem } from '#formats/ovf/read-item.ts';
import { readState } from '#formats/ovf/read-state.ts';
import { readStorage, unitBytes } from '#formats/ovf/read-storage.ts';
import { BIOS_TYPES, OWN, RESOURCE } from '#formats/ovf/vocabulary.ts';
import { attributeOf, childrenNamed, parseXml, type XmlElement } from '#lib/xml.ts';
import { XmlError } from '#lib/xml-scan.ts';

const DOING = 'read OVF';
const MAX_ITEMS = 2048;
const MIB = 1024 ** 2;
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;
const FIRMWARES: readonly FirmwareKind[] = ['bios', 'efi', 'efi-secure'];

/** Throws a FormatError with everything that is wrong with it. */
export function readOvf(input: Uint8Array | string): MachineDescription {
  const findings = new Findings();
  const envelope = openEnvelope(rootOf(input), findings);
  findings.settle(DOING);
  if (envelope === undefined) throw new FormatError(DOING, ['it holds no machine']);
  const items = itemsOf(envelope, findings);
  const machine = machineOf(envelope, items, findings);
  for (const fault of machineFaults(machine)) findings.fault(fault);
  findings.settle(DOING);
  return { ...machine, notes: [...ownNotes(envelope), ...findings.notes] };
}

function rootOf(input: Uint8Array | string): XmlElement {
  try {
    return parseXml(input);
  } catch (cause) {
    if (!(cause instanceof XmlError)) throw cause;
    throw new FormatError(DOING, [cause.message.replace(/^Cannot read XML: /, '')], { cause });
  }
}

function itemsOf({ hardware, product, version }: Envelope, findings: Findings): OvfItem[] {
  const elements = (hardware?.children ?? []).filter(({ name }) => /^(?:Storage|EthernetPort)?Item$/.test(name));
  if (elements.length > MAX_ITEMS) findings.fault(`there are ${elements.length} devices, more than ${MAX_ITEMS}`);
  const items = elements.slice(0, MAX_ITEMS).map((element) => readItem(element, findings));
  if (product !== 'oVirt' || !isBefore31(version) || !items.some(({ hasDevice }) => hasDevice)) return items;
  findings.note(`version ${version} knows no devices; what the file says of them is not taken over`);
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

function machineOf(envelope: Envelope, items: readonly OvfItem[], findings: Findings): MachineDescription {
  const { system, settings, product, version } = envelope;
  const text = (word: string) => settings.get(word)?.text.trim() || undefined;
  const machineType = text('customemulatedmachine');
  const { chipset, firmware } = boardOf(envelope, machineType, findings);
  const storage = readStorage(envelope, findings);
  const devices = layOutOvirt(readDevices(envelope, items, storage, chipset, findings), envelope, chipset, findings);
  const uuid = uuidOf(envelope);
  const serial = serialOf(envelope, uuid, findings);
  return {
    name: machineNameOf(text('name') ?? attributeOf(system, 'id') ?? '', findings),
    ...(uuid !== undefined && { uuid }),
    ...(serial !== undefined && { serial }),
    ...(machineType !== undefined && { machineType }),
    ...(chipset !== undefined && { chipset }),
    cpu: { ...cpuOf(items, findings), ...modelOf(text('customcpuname'), product, findings) },
    memoryMib: memoryOf(items, findings),
    firmware,
    tpm: devices.rows.some(({ type }) => type === 'tpm'),
    ...readState(envelope, storage, findings),
    ...devices,
    source: { format: 'ovf', ...(product !== undefined && { product }), ...(version !== undefined && { version }) },
    notes: [],
  };
}

/** oVirt has it at the operating system, its OVAs at the system itself. */
function uuidOf({ operatingSystem, system }: Envelope): string | undefined {
  return [attributeOf(operatingSystem, 'id'), attributeOf(system, 'id')].find(
    (id) => id !== undefined && UUID.test(id),
  );
}

function serialOf({ settings }: Envelope, uuid: string | undefined, findings: Findings): string | undefined {
  const policy = settings.get('serialnumberpolicy')?.text.trim();
  const custom = settings.get('customserialnumber')?.text;
  if (policy === '1') return uuid;
  if (policy === '0') findings.note('the serial of the machine was that of its host, which the file does not know');
  return custom === '' ? undefined : custom;
}

function boardOf(
  { settings, system, product }: Envelope,
  machineType: string | undefined,
  findings: Findings,
): { chipset?: Chipset; firmware: FirmwareKind } {
  if (product === undefined) return { firmware: plainFirmware(system) };
  const text = settings.get('biostype')?.text.trim();
  const said = BIOS_TYPES[Number(text ?? 0)];
  if (said === undefined) findings.fault(`there is no BiosType ${quoted(text ?? '')}`);
  if (product === 'Selfsame') {
    const own = attributeOf(system, 'chipset', OWN);
    const chipset = own === 'q35' || own === 'i440fx' ? own : undefined;
    const firmware = FIRMWARES.find((word) => word === attributeOf(system, 'firmware', OWN));
    return { ...(chipset !== undefined && { chipset }), firmware: firmware ?? said?.firmware ?? 'bios' };
  }
  return { chipset: chipsetOf(machineType) ?? said?.chipset, firmware: said?.firmware ?? 'bios' };
}

/** The standard has no word for it; VMware's is known. */
function plainFirmware(system: XmlElement): FirmwareKind {
  const configs = system.children.flatMap((section) => childrenNamed(section, 'Config'));
  const firmware = configs.find((config) => attributeOf(config, 'key') === 'firmware');
  return attributeOf(firmware, 'value') === 'efi' ? 'efi' : 'bios';
}

function modelOf(text: string | undefined, product: Envelope['product'], findings: Findings): { model?: string } {
  if (text === undefined) return {};
  if (product === 'Selfsame') return { model: text };
  findings.note(`the CPU model ${quoted(text)} is not taken over`);
  return {};
}

function theOne(items: readonly OvfItem[], type: number, what: string, findings: Findings): OvfItem | undefined {
  const found = items.filter(({ resourceType }) => resourceType === type);
  if (found.length !== 1) findings.fault(`there are ${found.length} Items of ${what}; expected one`);
  return found[0];
}

function cpuOf(items: readonly OvfItem[], findings: Findings): { sockets: number; cores: number; threads: number } {
  const item = theOne(items, RESOURCE.cpu, 'CPUs', findings);
  if (item === undefined) return { sockets: 1, cores: 1, threads: 1 };
  const read = (key: string) => numberIn(item.texts, key, item.label, findings);
  const quantity = read('VirtualQuantity');
  const threads = read('threads_per_cpu') ?? 1;
  const cores = read('cpu_per_socket') ?? read('CoresPerSocket') ?? 1;
  const sockets = read('num_of_sockets') ?? Math.max(1, (quantity ?? 1) / Math.max(1, cores * threads));
  const all = sockets * cores;
  if (quantity !== undefined && quantity !== all && quantity !== all * threads) {
    findings.fault(`there are ${quantity} CPUs, but ${sockets} sockets of ${cores} cores`);
  }
  return { sockets, cores, threads };
}

function memoryOf(items: readonly OvfItem[], findings: Findings): number {
  const item = theOne(items, RESOURCE.memory, 'memory', findings);
  if (item === undefined) return 1;
  const unit = unitBytes(item.texts.get('AllocationUnits') ?? 'MegaBytes');
  if (unit === undefined)
    findings.fault(`the unit of memory ${quoted(item.texts.get('AllocationUnits') ?? '')} is not known`);
  const quantity = numberIn(item.texts, 'VirtualQuantity', item.label, findings);
  if (quantity === undefined) findings.fault('how much memory there is, is not said');
  return Math.floor(((quantity ?? 1) * (unit ?? MIB)) / MIB);
}
