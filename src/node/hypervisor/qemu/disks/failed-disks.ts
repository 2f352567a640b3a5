/** Finds the disks whose errors have paused a guest. */
import type { DomainDefinition } from '#node/hardware/domain-definition.ts';
import type { FailedDisk } from '#node/hypervisor/hypervisor.ts';
import { belongsToDevice } from '#node/hypervisor/qemu/disks/disk-size.ts';
import type { QmpClient } from '#node/hypervisor/qemu/monitor/qmp.ts';

interface BlockStatus {
  readonly qdev?: string;
  /** Absent if errors of the disk do not pause the guest; `ok` again when the guest is resumed. */
  readonly 'io-status'?: 'ok' | 'failed' | 'nospace';
}

/** Returns the disks in the order of the definition. */
export async function readFailedDisks(
  qmp: Pick<QmpClient, 'execute'>,
  { devices }: Pick<DomainDefinition, 'devices'>,
): Promise<FailedDisk[]> {
  const blocks = (await qmp.execute('query-block')) as BlockStatus[];
  return devices.flatMap(({ type, id }) => {
    if (type !== 'disk') return [];
    const status = blocks.find((block) => belongsToDevice(block, id))?.['io-status'] ?? 'ok';
    return status === 'ok' ? [] : [{ deviceId: id, cause: status === 'nospace' ? 'noSpace' : 'failed' }];
  });
}
