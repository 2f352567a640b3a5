/** A disk of a running guest that has grown. */
import { HypervisorError } from '../hypervisor.ts';
import type { QmpClient } from './qmp.ts';

interface BlockInfo {
  readonly qdev?: string;
  readonly inserted?: { readonly 'node-name': string; readonly image: { readonly 'virtual-size': number } };
}

/** Never shrinks: QEMU would cut the medium off. */
export async function growDisk(qmp: QmpClient, deviceId: string, bytes: number): Promise<void> {
  const blocks = (await qmp.execute('query-block')) as BlockInfo[];
  const inserted = blocks.find((block) => isDevice(block, deviceId))?.inserted;
  if (inserted === undefined) throw new HypervisorError(`it has no disk "${deviceId}" with a medium`);
  if (bytes <= inserted.image['virtual-size']) return;
  await qmp.execute('block_resize', { 'node-name': inserted['node-name'], size: bytes });
}

/** The id itself, or the path of what it is made of. */
function isDevice({ qdev = '' }: BlockInfo, id: string): boolean {
  return qdev === id || qdev === `/machine/peripheral/${id}` || qdev.startsWith(`/machine/peripheral/${id}/`);
}
