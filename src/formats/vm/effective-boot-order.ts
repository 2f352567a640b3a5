/**
 * The boot order that a guest of ours really has, although its spec may name none: files of others have to say it. An
 * order in the spec wins. Otherwise the record of the last start decides, and disks that are new since then follow in the
 * order of the spec, as at the next start. Pure.
 */
import type { LearnedDevice } from '#api/learned-device.ts';
import { impliedOrders, isBootable } from '#formats/boot-sequence.ts';
import type { DescribedDisk, DescribedNic } from '#formats/machine.ts';

export interface BootedDevices {
  readonly disks: readonly DescribedDisk[];
  readonly nics: readonly DescribedNic[];
  /** Present where the spec names no order, and the one that holds is that of its disks. */
  readonly bootOrderIsImplied?: true;
}

export function effectiveBootOrder(
  disks: readonly DescribedDisk[],
  nics: readonly DescribedNic[],
  recorded: readonly LearnedDevice[],
): BootedDevices {
  const isNamed = [...disks, ...nics].some(({ bootOrder, plugged }) => plugged && bootOrder !== undefined);
  if (isNamed) return { disks, nics };
  const before = new Map(recorded.map(({ id, bootOrder }) => [id, bootOrder]));
  const placeOf = ({ id }: DescribedDisk) => before.get(id) ?? Number.MAX_SAFE_INTEGER;
  const inOrder = disks.filter(isBootable).toSorted((a, b) => placeOf(a) - placeOf(b));
  const orders = new Map(inOrder.map(({ id }, i) => [id, i + 1]));
  const implied = impliedOrders(disks);
  const isImplied = [...orders].every(([id, order]) => implied.get(id) === order);
  return {
    disks: disks.map((disk) => withOrder(disk, orders.get(disk.id))),
    // An order of an unplugged device is not in force, and may be one that is given here.
    nics: nics.map((nic) => withOrder(nic, undefined)),
    ...(isImplied && orders.size > 0 && { bootOrderIsImplied: true }),
  };
}

function withOrder<T extends { readonly bootOrder?: number }>(device: T, bootOrder: number | undefined): T {
  const { bootOrder: _, ...rest } = device;
  return (bootOrder === undefined ? rest : { ...rest, bootOrder }) as T;
}
