/** Defines the serial console, which is the first serial port, unless the spec disables it. */
import type { Devices } from '#api/domain/devices.ts';
import type { SerialDevice } from '#node/hardware/domain-definition.ts';

export function defineSerial({ autoattachSerialConsole }: Devices): SerialDevice[] {
  return autoattachSerialConsole === false ? [] : [{ type: 'serial', id: 'serial0' }];
}
