/**
 * The firmware UUID of VMs that were stored without one. It depends on the bare name only, in every namespace and every
 * cluster, as in KubeVirt. In a module of its own, so that it can be removed one day.
 */
import { createHash } from 'node:crypto';

/** Counts writes of legacy UUIDs, by writer (`use`). If it stays at zero, the legacy rule is no longer needed. */
export const LEGACY_UUID_METRIC = {
  name: 'selfsame_legacy_firmware_uuid_total',
  help: 'Number of times that a legacy firmware UUID, derived from the name of the VM, was written.',
  labels: ['use'],
} as const;

/** The cause of the uuid in the history of an identity record. */
export const LEGACY_RULE = 'legacy rule: the uuid is derived from the name of the VM';

const NAMESPACE = Buffer.from('6a1a24a1406146078bf4a3963d0c5895', 'hex');

/** Returns a version 5 UUID (RFC 4122). */
export function legacyUuid(vmName: string): string {
  const bytes = createHash('sha1').update(NAMESPACE).update(vmName).digest().subarray(0, 16);
  bytes.writeUInt8((bytes.readUInt8(6) & 0x0f) | 0x50, 6);
  bytes.writeUInt8((bytes.readUInt8(8) & 0x3f) | 0x80, 8);
  return bytes.toString('hex').replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-');
}
