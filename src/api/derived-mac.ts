/**
 * The MAC address of an interface for which nobody chose one. It follows from its owner, so that it is the same at each
 * start and on each node, and making it again after a lost write makes the same. Pure.
 */
import { createHash } from 'node:crypto';

/** `ownerUid` is the VM's, or that of an instance without one. Of the range that everybody may use (02:). */
export function derivedMac(ownerUid: string, interfaceName: string): string {
  const bytes = createHash('sha256').update(`${ownerUid}/${interfaceName}`).digest().subarray(0, 5);
  return ['02', ...[...bytes].map((byte) => byte.toString(16).padStart(2, '0'))].join(':');
}
