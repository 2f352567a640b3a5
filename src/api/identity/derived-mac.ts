/**
 * Derives the MAC address of an interface whose spec has none. The address depends on the owner only, so that it is the
 * same at each start and on each node, and a repeated attempt after a lost write gives the same address. Pure.
 */
import { createHash } from 'node:crypto';

/** Returns a locally administered address (02:). `ownerUid` is the uid of the VM, or of an instance without a VM. */
export function deriveMac(ownerUid: string, interfaceName: string): string {
  const bytes = createHash('sha256').update(`${ownerUid}/${interfaceName}`).digest().subarray(0, 5);
  return ['02', ...[...bytes].map((byte) => byte.toString(16).padStart(2, '0'))].join(':');
}
