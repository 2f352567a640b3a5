/** The serial console, unless the spec refuses it: the first serial port, as every PC has it. */
import type { Devices } from '#api/domain/devices.ts';
import type { SerialDevice } from '#node/definition/domain-definition.ts';

export function defineSerial({ autoattachSerialConsole }: Devices): SerialDevice[] {
  return autoattachSerialConsole === false ? [] : [{ type: 'serial', id: 'serial0' }];
}
