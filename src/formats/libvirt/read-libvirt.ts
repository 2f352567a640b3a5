/**
 * Reads libvirt domains as `virsh dumpxml` prints them. Disks keep their paths; the import assigns claims. Notes name
 * the parts that we do not support; a file with contradictions is refused.
 */
import { chipsetOf, type Chipset } from '#api/devices/chipset.ts';
import { checkDescription } from '#formats/check-description.ts';
import { toMachineName } from '#formats/device-names.ts';
import { Findings, FileFormatError } from '#formats/findings.ts';
import { readDomainDevices } from '#formats/libvirt/read-devices.ts';
import type { FirmwareKind, MachineDescription } from '#formats/machine.ts';
import { attributeOf, childNamed, childrenNamed, parseXml, type XmlElement } from '#lib/xml/xml.ts';
import { XmlError } from '#lib/xml/xml-scan.ts';
import { quoteText } from '#lib/text/quote-text.ts';

const ACTION = 'read libvirt domain';
const MIB = 1024 ** 2;

/** Elements that are read, or that do not affect what the guest sees. */
const KNOWN = new Set([
  ...['name', 'uuid', 'memory', 'currentMemory', 'vcpu', 'cpu', 'os', 'sysinfo', 'devices', 'title', 'description'],
  ...['on_poweroff', 'on_reboot', 'on_crash', 'pm', 'resource', 'seclabel', 'genid'],
]);

/** Throws a FileFormatError with all errors of the file. */
export function readLibvirt(input: Uint8Array | string): MachineDescription {
  const findings = new Findings();
  const root = parseRoot(input);
  if (root.name !== 'domain') findings.addError(`the root element is ${quoteText(root.name)}; expected a domain`);
  findings.throwIfErrors(ACTION);
  const ignored = root.children.filter(({ name }) => !KNOWN.has(name)).map(({ name }) => name);
  if (ignored.length > 0) findings.addNote(`parts that are not imported: ${[...new Set(ignored)].join(', ')}`);
  const machine = readMachine(root, findings);
  for (const error of checkDescription(machine)) findings.addError(error);
  findings.throwIfErrors(ACTION);
  return { ...machine, notes: findings.notes };
}

function parseRoot(input: Uint8Array | string): XmlElement {
  try {
    return parseXml(input);
  } catch (cause) {
    if (!(cause instanceof XmlError)) throw cause;
    throw new FileFormatError(ACTION, [cause.message.replace(/^Cannot read XML: /, '')], { cause });
  }
}

function readMachine(root: XmlElement, findings: Findings): MachineDescription {
  const os = childNamed(root, 'os');
  const machineType = attributeOf(childNamed(os, 'type'), 'machine');
  const chipset = readChipset(os, machineType, findings);
  const devices = readDomainDevices(childNamed(root, 'devices'), readBootDevices(os, findings), chipset, findings);
  const uuid = childNamed(root, 'uuid')?.text.trim();
  const serial = readSerial(root, findings);
  return {
    name: toMachineName(childNamed(root, 'name')?.text.trim() ?? '', findings),
    ...(uuid !== undefined && { uuid }),
    ...(serial !== undefined && { serial }),
    ...(machineType !== undefined && { machineType }),
    ...(chipset !== undefined && { chipset }),
    cpu: readCpu(root, findings),
    memoryMib: readMemory(root, findings),
    firmware: readFirmware(os, findings),
    tpm: devices.rows.some(({ type }) => type === 'tpm'),
    ...devices,
    source: { format: 'libvirt' },
    notes: [],
  };
}

function readChipset(
  os: XmlElement | undefined,
  machineType: string | undefined,
  findings: Findings,
): Chipset | undefined {
  const type = childNamed(os, 'type');
  const arch = attributeOf(type, 'arch') ?? 'x86_64';
  if (arch !== 'x86_64') findings.addError(`the machine is ${quoteText(arch)}; expected x86_64`);
  if ((type?.text.trim() || 'hvm') !== 'hvm') findings.addError('the machine is not fully virtualized (hvm)');
  const chipset = chipsetOf(machineType);
  if (machineType !== undefined && chipset === undefined) {
    findings.addError(`the machine type ${quoteText(machineType)} is neither q35 nor i440fx`);
  }
  return chipset;
}

function readFirmware(os: XmlElement | undefined, findings: Findings): FirmwareKind {
  const loader = childNamed(os, 'loader');
  for (const name of ['nvram', 'kernel', 'initrd', 'cmdline', 'dtb', 'bootmenu']) {
    if (childNamed(os, name) !== undefined) findings.addNote(`${name} of os is not imported`);
  }
  const isEfi = attributeOf(os, 'firmware') === 'efi' || attributeOf(loader, 'type') === 'pflash';
  if (!isEfi) return 'bios';
  return attributeOf(loader, 'secure') === 'yes' ? 'efi-secure' : 'efi';
}

function readBootDevices(os: XmlElement | undefined, findings: Findings): string[] {
  return childrenNamed(os, 'boot').flatMap((boot) => {
    const dev = attributeOf(boot, 'dev') ?? '';
    const letter = { hd: 'c', cdrom: 'd', network: 'n' }[dev as 'hd'];
    if (typeof letter === 'string') return [letter];
    findings.addNote(`the boot device ${quoteText(dev)} is not imported`);
    return [];
  });
}

function readSerial(root: XmlElement, findings: Findings): string | undefined {
  let serial: string | undefined;
  for (const part of childrenNamed(root, 'sysinfo').flatMap(({ children }) => children)) {
    for (const entry of childrenNamed(part, 'entry')) {
      const name = attributeOf(entry, 'name') ?? '';
      if (part.name === 'system' && name === 'serial') serial = entry.text;
      else if (part.name !== 'system' || name !== 'uuid')
        findings.addNote(`sysinfo ${part.name}.${name} is not imported`);
    }
  }
  return serial === '' ? undefined : serial;
}

const UNITS = new Map([
  ...(['b', 'bytes'] as const).map((word) => [word, 1] as const),
  ...['k', 'm', 'g', 't'].flatMap((letter, i) => [
    [letter, 1024 ** (i + 1)] as const,
    [`${letter}ib`, 1024 ** (i + 1)] as const,
    [`${letter}b`, 1000 ** (i + 1)] as const,
  ]),
]);

function readMemory(root: XmlElement, findings: Findings): number {
  const bytes = (element: XmlElement | undefined) => {
    const unit = UNITS.get((attributeOf(element, 'unit') ?? 'KiB').toLowerCase());
    const text = element?.text.trim() ?? '';
    return unit !== undefined && /^[0-9]{1,15}$/.test(text) ? Number(text) * unit : undefined;
  };
  const memory = bytes(childNamed(root, 'memory'));
  const current = bytes(childNamed(root, 'currentMemory'));
  if (memory === undefined) findings.addError('the memory size is missing or invalid');
  if (current !== undefined && current !== memory)
    findings.addNote('currentMemory is not imported: the guest gets all of its memory');
  return Math.floor((memory ?? MIB) / MIB);
}

function readCpu(root: XmlElement, findings: Findings): MachineDescription['cpu'] {
  const cpu = childNamed(root, 'cpu');
  const topology = childNamed(cpu, 'topology');
  const vcpu = childNamed(root, 'vcpu');
  const count = (text: string | undefined, otherwise: number) =>
    /^[0-9]{1,5}$/.test(text ?? '') ? Number(text) : otherwise;
  const vcpus = count(vcpu?.text.trim(), 1);
  if (attributeOf(vcpu, 'current') !== undefined)
    findings.addNote('CPUs that can be added later are present from the start');
  for (const name of ['feature', 'numa', 'cache', 'maxphysaddr']) {
    if (childNamed(cpu, name) !== undefined) findings.addNote(`${name} of cpu is not imported`);
  }
  const model = readCpuModel(cpu);
  if (topology === undefined) return { sockets: vcpus, cores: 1, threads: 1, ...model };
  const part = (name: string) => count(attributeOf(topology, name), 1);
  const sockets = part('sockets') * part('dies') * part('clusters');
  const [cores, threads] = [part('cores'), part('threads')];
  if (vcpu !== undefined && sockets * cores * threads !== vcpus) {
    findings.addError(`there are ${vcpus} CPUs, but the topology has ${sockets * cores * threads}`);
  }
  return { sockets, cores, threads, ...model };
}

function readCpuModel(cpu: XmlElement | undefined): { model?: string } {
  const mode = attributeOf(cpu, 'mode');
  if (mode === 'host-passthrough' || mode === 'host-model') return { model: mode };
  const model = childNamed(cpu, 'model')?.text.trim();
  return model === undefined || model === '' ? {} : { model };
}
