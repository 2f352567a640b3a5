/**
 * The firmware uuid of VMs that were made without one: it follows from the bare name, in every namespace and every
 * cluster, as KubeVirt has it. Kept apart so that it can be dropped one day.
 */
import { createHash } from 'node:crypto';

/** Counts each time that it was written, by what wrote it (`use`): who sees no more of them can do without it. */
export const LEGACY_UUID_METRIC = {
  name: 'selfsame_legacy_firmware_uuid_total',
  help: 'How often the firmware uuid of the old, name-based rule was written.',
} as const;

/** The cause of the uuid in the history of an identity record. */
export const LEGACY_RULE = 'legacy rule: the uuid follows from the name of the VM';

const NAMESPACE = Buffer.from('6a1a24a1406146078bf4a3963d0c5895', 'hex');

/** A version 5 uuid (RFC 4122). */
export function legacyUuid(vmName: string): string {
  const bytes = createHash('sha1').update(NAMESPACE).update(vmName).digest().subarray(0, 16);
  bytes.writeUInt8((bytes.readUInt8(6) & 0x0f) | 0x50, 6);
  bytes.writeUInt8((bytes.readUInt8(8) & 0x3f) | 0x80, 8);
  return bytes.toString('hex').replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-');
}
