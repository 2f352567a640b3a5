/**
 * The order in which managers of old gave their devices to the hypervisor, which placed them one after the other. What
 * comes from there without an address is placed in this order, so that it stands where the guest knows it.
 */

/** A row of a record, or a device of a definition. */
export interface OldDevice {
  readonly type: string;
  readonly device?: string;
  readonly media?: string;
  readonly name?: string;
  readonly bootOrder?: number;
  readonly row?: { readonly type: string };
}

const RANKS = ['video', 'cdrom', 'floppy', 'disk', 'interface', 'sound'];

const byName = new Intl.Collator('en', { numeric: true });

/** A disk that boots before all others is the first of them, the rest goes by name: disk2 before disk10. */
export function oldOrder<T extends OldDevice>(devices: readonly T[]): T[] {
  const orders = devices.flatMap((device) => (rankOf(device) === 'disk' ? (device.bootOrder ?? []) : []));
  const firstBoot = Math.min(...orders);
  const isBootDisk = ({ bootOrder }: T) => bootOrder !== undefined && bootOrder === firstBoot;
  return devices.toSorted((a, b) => {
    const [rank, other] = [rankOf(a), rankOf(b)];
    if (rank !== other) return indexOf(rank) - indexOf(other);
    if (rank !== 'disk') return 0;
    return Number(isBootDisk(b)) - Number(isBootDisk(a)) || byName.compare(a.name ?? '', b.name ?? '');
  });
}

function rankOf({ type, device, media, row }: OldDevice): string {
  if (type !== 'disk') return row?.type ?? type;
  const kind = media ?? device;
  return kind === 'cdrom' || kind === 'floppy' ? kind : 'disk';
}

/** What has no rank comes last, in the order in which it was given. */
function indexOf(rank: string): number {
  const index = RANKS.indexOf(rank);
  return index === -1 ? RANKS.length : index;
}
