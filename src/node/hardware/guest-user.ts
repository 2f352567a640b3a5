/** The user that runs QEMU and swtpm of one guest, if the node agent is root. Pure. */
import { createHash } from 'node:crypto';

export interface ProcessUser {
  readonly uid: number;
  readonly gid: number;
}

/**
 * Ids that nobody assigns: systemd documents this range as unused, and ids from 2^31 on are not usable everywhere. Accounts
 * for them do not exist and are not needed.
 */
const FIRST_ID = 0x7000_0000;
const ID_COUNT = 0x1000_0000;

/** The group of disks that several guests use at a time. Debian reserves this id for unprivileged guests (libvirt-qemu). */
export const SHARED_DISKS_GID = 64_055;

/**
 * Returns the user of a domain. It follows from the id alone, so that both ends of a migration agree on the owner of
 * shared disks. Two domains of a node can have the same user by chance (1 in 54,000 with 100 guests); each still sees only
 * its own files.
 */
export function guestUserOf(domainId: string): ProcessUser {
  const id = FIRST_ID + (createHash('sha256').update(domainId).digest().readUInt32BE() % ID_COUNT);
  return { uid: id, gid: id };
}
