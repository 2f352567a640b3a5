/**
 * Finds the boot order that a guest actually has, because other file formats require one even if the spec has none. An
 * order in the spec wins. Otherwise the record of the last start decides, and newer disks follow in the order of the
 * spec, as at the next start. Pure.
 */
import type { LearnedDevice } from '#api/devices/learned-device.ts';
import { impliedBootOrders, isBootable } from '#formats/boot-sequence.ts';
import type { DescribedDisk, DescribedNic } from '#formats/machine.ts';

interface EffectiveBootOrder {
  readonly disks: readonly DescribedDisk[];
  readonly nics: readonly DescribedNic[];
  /** Set if the spec has no boot order and the effective one is that of its disks. */
  readonly bootOrderIsImplied?: true;
}

export function findEffectiveBootOrder(
  disks: readonly DescribedDisk[],
  nics: readonly DescribedNic[],
  recorded: readonly LearnedDevice[],
): EffectiveBootOrder {
  const isNamed = [...disks, ...nics].some(({ bootOrder, plugged }) => plugged && bootOrder !== undefined);
  if (isNamed) return { disks, nics };
  const before = new Map(recorded.map(({ id, bootOrder }) => [id, bootOrder]));
  const recordedOrder = ({ id }: DescribedDisk) => before.get(id) ?? Number.MAX_SAFE_INTEGER;
  const inOrder = disks.filter(isBootable).toSorted((a, b) => recordedOrder(a) - recordedOrder(b));
  const orders = new Map(inOrder.map(({ id }, i) => [id, i + 1]));
  const implied = impliedBootOrders(disks);
  const isImplied = [...orders].every(([id, order]) => implied.get(id) === order);
  return {
    disks: disks.map((disk) => withOrder(disk, orders.get(disk.id))),
    // The order of an unplugged device has no effect, and could equal one that is assigned here.
    nics: nics.map((nic) => withOrder(nic, undefined)),
    ...(isImplied && orders.size > 0 && { bootOrderIsImplied: true }),
  };
}

function withOrder<T extends { readonly bootOrder?: number }>(device: T, bootOrder: number | undefined): T {
  const { bootOrder: _, ...rest } = device;
  return (bootOrder === undefined ? rest : { ...rest, bootOrder }) as T;
}
