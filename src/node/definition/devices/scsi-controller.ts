/**
 * The one SCSI controller. A guest that starts for the first time has it, so that disks can be plugged in while it runs.
 * Later it has it where SCSI disks need it or where it was there: hardware neither appears by itself nor vanishes.
 */
import type { LearnedDevice } from '#api/learned-device.ts';
import type { Unplaced } from '#node/definition/addresses/unplaced.ts';
import type { DiskDevice, ScsiController } from '#node/definition/domain-definition.ts';

const ID = 'scsi0';

export function defineScsiController(
  disks: readonly DiskDevice[],
  { rows, complete = false }: { readonly rows: readonly LearnedDevice[]; readonly complete?: boolean },
  queues?: number,
): Unplaced<ScsiController>[] {
  const isNeeded = disks.some(({ bus }) => bus === 'scsi');
  const isFirst = rows.length === 0 && !complete;
  const isWanted = isFirst || isNeeded || rows.some(({ id }) => id === ID);
  const device: ScsiController = { type: 'scsi-controller', id: ID, ...(queues !== undefined && { queues }) };
  return isWanted ? [{ device, field: 'spec.domain.devices.disks' }] : [];
}
