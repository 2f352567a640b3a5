/**
 * Defines the SCSI controller. A guest gets it on its first start, so that disks can be hotplugged. Later it has the
 * controller if SCSI disks need it or if the record has it: hardware neither appears nor vanishes unasked.
 */
import type { LearnedDevice } from '#api/devices/learned-device.ts';
import type { UnplacedDevice } from '#node/definition/addresses/unplaced-device.ts';
import type { DiskDevice, ScsiController } from '#node/hardware/domain-definition.ts';

const ID = 'scsi0';

export function defineScsiController(
  disks: readonly DiskDevice[],
  { rows, complete = false }: { readonly rows: readonly LearnedDevice[]; readonly complete?: boolean },
  queues?: number,
): UnplacedDevice<ScsiController>[] {
  const isNeeded = disks.some(({ bus }) => bus === 'scsi');
  const isFirst = rows.length === 0 && !complete;
  const isWanted = isFirst || isNeeded || rows.some(({ id }) => id === ID);
  const device: ScsiController = { type: 'scsi-controller', id: ID, ...(queues !== undefined && { queues }) };
  return isWanted ? [{ device, field: 'spec.domain.devices.disks' }] : [];
}
