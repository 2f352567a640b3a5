/** The one SCSI controller, for guests that have SCSI disks or had some: hardware that was there stays. */
import type { LearnedDevice } from '#api/learned-device.ts';
import { fixedAddress } from '#node/definition/addresses/layout-q35.ts';
import type { DiskDevice, ScsiController } from '#node/definition/domain-definition.ts';

const ID = 'scsi0';

export function defineScsiController(disks: readonly DiskDevice[], known: readonly LearnedDevice[]): ScsiController[] {
  const isWanted = disks.some(({ bus }) => bus === 'scsi') || known.some(({ id }) => id === ID);
  return isWanted ? [{ type: 'scsi-controller', id: ID, address: fixedAddress(ID) }] : [];
}
