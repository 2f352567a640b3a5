/** The size of a running guest's disks, and how they grow. */
import type { DomainDefinition } from '#node/hardware/domain-definition.ts';
import { HypervisorError } from '#node/hypervisor/hypervisor.ts';
import type { QmpClient } from '#node/hypervisor/qemu/monitor/qmp.ts';

interface BlockInfo {
  readonly qdev?: string;
  readonly inserted?: { readonly 'node-name': string; readonly image: ImageInfo };
}

interface ImageInfo {
  readonly 'virtual-size': number;
  readonly 'actual-size'?: number;
  readonly 'backing-image'?: ImageInfo;
}

interface DiskMedium {
  readonly node: string;
  readonly bytes: number;
  /** Bytes allocated on the host in all layers; 0 for block devices. */
  readonly allocatedBytes: number;
}

/** Throws if the guest has no such disk or the disk has no medium. */
export async function readMedium(qmp: QmpClient, deviceId: string): Promise<DiskMedium> {
  const blocks = (await qmp.execute('query-block')) as BlockInfo[];
  const inserted = blocks.find((block) => belongsToDevice(block, deviceId))?.inserted;
  if (inserted === undefined) throw new HypervisorError(`the guest has no disk "${deviceId}" with a medium`);
  const { image } = inserted;
  return { node: inserted['node-name'], bytes: image['virtual-size'], allocatedBytes: allocatedBytes(image) };
}

/** Returns the size of each disk with a medium, by device id. */
export async function readDiskSizes(
  qmp: QmpClient,
  { devices }: Pick<DomainDefinition, 'devices'>,
): Promise<ReadonlyMap<string, number>> {
  const blocks = (await qmp.execute('query-block')) as BlockInfo[];
  const sizes = new Map<string, number>();
  for (const { id } of devices.filter(({ type }) => type === 'disk')) {
    const inserted = blocks.find((block) => belongsToDevice(block, id))?.inserted;
    if (inserted !== undefined) sizes.set(id, inserted.image['virtual-size']);
  }
  return sizes;
}

function allocatedBytes(image: ImageInfo): number {
  let sum = 0;
  for (let layer: ImageInfo | undefined = image; layer !== undefined; layer = layer['backing-image']) {
    sum += layer['actual-size'] ?? 0;
  }
  return sum;
}

/** Grows a disk. Never shrinks it: QEMU would truncate the medium. */
export async function growDisk(qmp: QmpClient, deviceId: string, bytes: number): Promise<void> {
  const medium = await readMedium(qmp, deviceId);
  if (bytes > medium.bytes) await qmp.execute('block_resize', { 'node-name': medium.node, size: bytes });
}

/** Compares with the device id and with its path in QEMU's object tree. */
export function belongsToDevice({ qdev = '' }: Pick<BlockInfo, 'qdev'>, id: string): boolean {
  return qdev === id || qdev === `/machine/peripheral/${id}` || qdev.startsWith(`/machine/peripheral/${id}/`);
}
