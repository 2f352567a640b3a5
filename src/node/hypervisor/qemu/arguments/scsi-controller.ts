import type { Chipset } from '#api/devices/chipset.ts';
import type { ScsiController } from '#node/hardware/domain-definition.ts';
import { deviceArguments } from '#node/hypervisor/qemu/arguments/option-text.ts';
import { pciPlace } from '#node/hypervisor/qemu/arguments/pci-place.ts';

export function scsiControllerArguments(controller: ScsiController, chipset: Chipset): string[] {
  const { id, queues } = controller;
  return deviceArguments({
    driver: 'virtio-scsi-pci',
    id,
    ...pciPlace(controller, chipset),
    ...(queues !== undefined && { num_queues: queues }),
  });
}
