/** Derives the ids of devices in OVFs: uuids that are always the same for the same device of the same machine. Pure. */
import { createHash } from 'node:crypto';
import type { MachineDescription } from '#formats/machine.ts';

export function instanceId({ uuid, name }: Pick<MachineDescription, 'uuid' | 'name'>, id: string): string {
  const bytes = createHash('sha256')
    .update(`${uuid ?? name}/${id}`)
    .digest()
    .subarray(0, 16);
  // Version 8: a vendor-specific uuid.
  bytes.writeUInt8((bytes.readUInt8(6) & 0x0f) | 0x80, 6);
  bytes.writeUInt8((bytes.readUInt8(8) & 0x3f) | 0x80, 8);
  return bytes.toString('hex').replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');
}
