import type { SerialDevice } from '#node/hardware/domain-definition.ts';
import { deviceArguments, optionText } from '#node/hypervisor/qemu/arguments/option-text.ts';
import type { QemuHost } from '#node/hypervisor/qemu/arguments/qemu-host.ts';

/** Builds the arguments of the serial port. Index 0 is COM1: port 0x3f8, IRQ 4. */
export function serialArguments({ id }: SerialDevice, { serialSocket }: QemuHost): string[] {
  const chardev = `chr-${id}`;
  return [
    '-chardev',
    optionText('socket', { id: chardev, path: serialSocket, server: true, wait: false }),
    ...deviceArguments({ driver: 'isa-serial', id, bus: 'isa.0', index: 0, chardev }),
  ];
}
