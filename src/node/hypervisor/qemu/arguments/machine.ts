/** Arguments of the machine without its devices: chipset, processors, memory, firmware and SMBIOS values. */
import { invariant } from '#lib/invariant.ts';
import type { DomainDefinition } from '#node/hardware/domain-definition.ts';
import { timerOptions } from '#node/hypervisor/qemu/arguments/clock.ts';
import { blockdevArguments, optionText } from '#node/hypervisor/qemu/arguments/option-text.ts';
import type { QemuHost } from '#node/hypervisor/qemu/arguments/qemu-host.ts';

const CODE_NODE = 'pflash-code';
const VARS_NODE = 'pflash-vars';

export function machineArguments(definition: DomainDefinition, host: QemuHost): string[] {
  const { machine, cpu, memoryKib, acpi, smm, firmware } = definition;
  const isEfi = firmware.loader.type === 'efi';
  const cpus = cpu.sockets * cpu.cores * cpu.threads;
  const flash = isEfi && { pflash0: CODE_NODE, pflash1: VARS_NODE };
  return [
    ...(isEfi ? flashArguments(definition, host) : []),
    '-machine',
    optionText('', {
      type: machine,
      accel: host.accelerator,
      usb: false,
      smm,
      acpi,
      'dump-guest-core': false,
      ...timerOptions(definition.clock),
      ...flash,
    }),
    '-cpu',
    optionText(cpu.model, cpu.features ?? {}),
    '-smp',
    optionText('', { cpus, sockets: cpu.sockets, cores: cpu.cores, threads: cpu.threads, maxcpus: cpus }),
    '-m',
    optionText('', { size: `${memoryKib}k` }),
    '-uuid',
    firmware.uuid,
    ...smbiosArguments(firmware),
    ...Array.from({ length: definition.ioThreads ?? 0 }, (_, i) => [
      '-object',
      JSON.stringify({ 'qom-type': 'iothread', id: ioThreadName(i) }),
    ]).flat(),
    ...kernelArguments(definition, host),
  ];
}

export function ioThreadName(index: number): string {
  return `iothread${index}`;
}

function smbiosArguments({ serial, smbios, chassis }: DomainDefinition['firmware']): string[] {
  const system = { ...smbios, ...(serial !== undefined && { serial }) };
  return [
    ...(Object.keys(system).length === 0 ? [] : ['-smbios', optionText('', { type: 1, ...system })]),
    ...(chassis === undefined ? [] : ['-smbios', optionText('', { type: 3, ...chassis })]),
  ];
}

function flashArguments({ firmware: { loader } }: DomainDefinition, { ovmfCode, nvram }: QemuHost): string[] {
  invariant(ovmfCode !== undefined && nvram !== undefined, 'a guest with EFI has its firmware files');
  const isSecure = loader.type === 'efi' && loader.secureBoot;
  return [
    ...blockdevArguments({ driver: 'file', 'node-name': CODE_NODE, filename: ovmfCode, 'read-only': true }),
    ...blockdevArguments({ driver: 'file', 'node-name': VARS_NODE, filename: nvram, 'read-only': false }),
    // With this, only code in system management mode can write the variables.
    ...(isSecure ? ['-global', optionText('', { driver: 'cfi.pflash01', property: 'secure', value: true })] : []),
  ];
}

function kernelArguments({ kernel }: DomainDefinition, host: QemuHost): string[] {
  if (kernel === undefined) return [];
  const { kernelPath, initrdPath, arguments: text } = kernel;
  return [
    '-kernel',
    host.pathOf(kernelPath),
    ...(initrdPath === undefined ? [] : ['-initrd', host.pathOf(initrdPath)]),
    ...(text === '' ? [] : ['-append', text]),
  ];
}
