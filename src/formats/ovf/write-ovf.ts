/**
 * Writes OVFs in the form of oVirt 4.x, with attributes and elements of our own namespace for everything else.
 * read-ovf.ts reads them back without loss.
 */
import { deriveSequence, sequenceNumber } from '#formats/boot-sequence.ts';
import type { DescribedDisk, MachineDescription } from '#formats/machine.ts';
import { cloudInitElements } from '#formats/ovf/cloud-init.ts';
import { labelElements } from '#formats/ovf/labels.ts';
import { instanceId } from '#formats/ovf/instance-id.ts';
import {
  BIOS_TYPES,
  INTERFACE_OF_BUS,
  OVF_OVIRT,
  OWN,
  OWN_VERSION,
  RASD,
  VSSD,
  WRITTEN_AS,
  XSI,
} from '#formats/ovf/vocabulary.ts';
import { writeItems } from '#formats/ovf/write-items.ts';
import { leaf, printXml, xml, type XmlOutput } from '#lib/xml/xml-writer.ts';

const GIB = 1024 ** 3;
const CUSTOM_SERIAL = 2;

/** Throws a TypeError if a text of the machine has characters that XML cannot represent. */
export function writeOvf(machine: MachineDescription): string {
  const namespaces = { ovf: OVF_OVIRT, rasd: RASD, vssd: VSSD, xsi: XSI, selfsame: OWN };
  const declared = Object.fromEntries(Object.entries(namespaces).map(([prefix, uri]) => [`xmlns:${prefix}`, uri]));
  const root = xml('ovf:Envelope', { ...declared, 'ovf:version': WRITTEN_AS, 'selfsame:version': OWN_VERSION }, [
    buildReferences(machine),
    buildNetworkSection(machine),
    buildDiskSection(machine),
    buildContent(machine),
  ]);
  return printXml(root);
}

function buildReferences(machine: MachineDescription): XmlOutput {
  const files = machine.disks.flatMap((disk) => {
    if (disk.file === undefined) return [];
    const size = disk.format === 'raw' ? disk.sizeBytes : undefined;
    return [
      xml('File', { 'ovf:href': disk.file, 'ovf:id': fileId(machine, disk), 'ovf:size': size, 'ovf:description': '' }),
    ];
  });
  const { file, sizeBytes } = machine.state ?? {};
  const state =
    file === undefined
      ? undefined
      : xml('File', { 'ovf:href': file, 'ovf:id': stateId(machine), 'ovf:size': sizeBytes, 'ovf:description': '' });
  const nics = machine.nics.map(({ id }) => xml('Nic', { 'ovf:id': instanceId(machine, id) }));
  return xml('References', {}, [...files, state, ...nics]);
}

function stateId(machine: MachineDescription): string {
  return instanceId(machine, 'state/archive');
}

function stateElement(machine: MachineDescription): XmlOutput | undefined {
  const { state } = machine;
  if (state === undefined) return undefined;
  return xml('selfsame:State', {
    'selfsame:tpm': state.tpm,
    'selfsame:efi': state.efi,
    'selfsame:fileRef': state.file === undefined ? undefined : stateId(machine),
  });
}

function fileId(machine: MachineDescription, disk: DescribedDisk): string {
  return instanceId(machine, `${disk.id}/image`);
}

function buildNetworkSection({ nics }: MachineDescription): XmlOutput {
  const names = new Set(nics.flatMap(({ network }) => network ?? []));
  const listed = [...names].map((name) => xml('Network', { 'ovf:name': name }));
  return xml('NetworkSection', {}, [leaf('Info', 'List of networks'), ...listed]);
}

function buildDiskSection(machine: MachineDescription): XmlOutput {
  const disks = machine.disks.filter(({ media }) => media === 'disk' || media === 'lun');
  const first = findFirstBootDisk(disks);
  const listed = disks.map((disk) => diskElement(machine, disk, disk === first));
  return xml('Section', { 'xsi:type': 'ovf:DiskSection_Type' }, [leaf('Info', 'List of Virtual Disks'), ...listed]);
}

/**
 * Returns the disk that the guest tries first. oVirt has one boot disk per VM; if several are marked, it boots from the
 * one that it reads last. The Items contain the whole order.
 */
function findFirstBootDisk(disks: readonly DescribedDisk[]): DescribedDisk | undefined {
  return disks
    .filter(({ bootOrder, plugged }) => plugged && bootOrder !== undefined)
    .toSorted((a, b) => (a.bootOrder ?? 0) - (b.bootOrder ?? 0))[0];
}

function diskElement(machine: MachineDescription, disk: DescribedDisk, isFirstBooted: boolean): XmlOutput {
  const isQcow = disk.format === 'qcow2';
  const sparse = 'http://www.vmware.com/specifications/vmdk.html#sparse';
  const qcow = 'http://www.gnome.org/~markmc/qcow-image-format.html';
  return xml('Disk', {
    'ovf:diskId': fileId(machine, disk),
    'ovf:size': disk.sizeBytes === undefined ? undefined : Math.ceil(disk.sizeBytes / GIB),
    'ovf:parentRef': '',
    'ovf:fileRef': disk.file === undefined ? undefined : fileId(machine, disk),
    'ovf:format': isQcow ? qcow : sparse,
    'ovf:volume-format': isQcow ? 'COW' : 'RAW',
    'ovf:volume-type': 'Sparse',
    'ovf:disk-interface': disk.bus === 'fdc' ? undefined : INTERFACE_OF_BUS[disk.bus],
    'ovf:read-only': disk.readonly,
    'ovf:boot': isFirstBooted,
    'ovf:disk-alias': disk.name,
    'ovf:lun_id': disk.lun?.guid,
    'selfsame:uuid': disk.lun?.uuid,
    'selfsame:capacity': disk.sizeBytes,
  });
}

function buildContent(machine: MachineDescription): XmlOutput {
  const { name, uuid, serial, machineType, chipset, firmware, cpu, disks, nics, notes } = machine;
  const kinds = [
    ...disks.map(({ media, bootOrder }) => ({ kind: media, bootOrder })),
    ...nics.map(({ bootOrder }) => ({ kind: 'nic' as const, bootOrder })),
  ];
  const biosType = BIOS_TYPES.findIndex((bios) => bios.chipset === (chipset ?? 'q35') && bios.firmware === firmware);
  const own = {
    'selfsame:chipset': chipset,
    'selfsame:firmware': firmware,
    'selfsame:hostname': machine.hostname,
    'selfsame:boot-order': machine.bootOrderIsImplied === true ? 'implied' : undefined,
  };
  return xml('Content', { 'ovf:id': 'out', 'xsi:type': 'ovf:VirtualSystem_Type', ...own }, [
    leaf('Name', name),
    leaf('default_boot_sequence', sequenceNumber(deriveSequence(kinds))),
    leaf('BiosType', Math.max(biosType, 0)),
    leaf('CustomEmulatedMachine', machineType),
    leaf('CustomCpuName', cpu.model),
    serial === undefined ? undefined : leaf('SerialNumberPolicy', CUSTOM_SERIAL),
    leaf('CustomSerialNumber', serial),
    stateElement(machine),
    ...cloudInitElements(machine),
    ...labelElements(machine),
    ...notes.map((note) => leaf('selfsame:Note', note)),
    xml('Section', { 'ovf:id': uuid, 'ovf:required': false, 'xsi:type': 'ovf:OperatingSystemSection_Type' }, [
      leaf('Info', 'Guest Operating System'),
      leaf('Description', 'other'),
    ]),
    xml('Section', { 'xsi:type': 'ovf:VirtualHardwareSection_Type' }, [
      leaf('Info', `${cpu.sockets * cpu.cores * cpu.threads} CPU, ${machine.memoryMib} Memory`),
      xml('System', {}, [leaf('vssd:VirtualSystemType', `ENGINE ${WRITTEN_AS}`)]),
      ...writeItems(machine),
    ]),
  ]);
}
