/** The machine of the tour: EFI and TPM whose content is kept, a disk, an interface; and its disk that comes and goes. */
import type { VirtualMachine } from '#api/virtual-machine/kind.ts';
import { GUEST_IMAGE } from '#api/names.ts';
import type { PersistentVolumeClaim } from '#kube/core-kinds.ts';

export const VM_NAME = 'selfsame';
export const DISK_CLAIM = 'selfsame-data';
export const PLUGGED = 'plugged';
export const FIRST_MACHINE = 'pc-q35-6.2';
export const OTHER_MACHINE = 'pc-q35-7.2';

export const tourVm: Pick<VirtualMachine, 'metadata' | 'spec'> = {
  metadata: { name: VM_NAME },
  spec: {
    runStrategy: 'Always',
    template: {
      spec: {
        // Who leaves while it boots does not want to wait for a firmware that hears no power button.
        terminationGracePeriodSeconds: 10,
        domain: {
          machine: { type: FIRST_MACHINE },
          memory: { guest: '256Mi' },
          firmware: {
            bootloader: { efi: { secureBoot: false, persistent: true } },
            kernelBoot: { kernelArgs: 'console=ttyS0 quiet guest.wait=1', container: { image: GUEST_IMAGE } },
          },
          devices: {
            tpm: { persistent: true },
            disks: [{ name: 'data', disk: { bus: 'virtio' }, serial: 'data' }],
            interfaces: [{ name: 'default', masquerade: {} }],
          },
        },
        networks: [{ name: 'default', pod: {} }],
        volumes: [{ name: 'data', persistentVolumeClaim: { claimName: DISK_CLAIM } }],
      },
    },
  },
};

export function claim(name: string): Pick<PersistentVolumeClaim, 'metadata' | 'spec'> {
  return {
    metadata: { name },
    spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '16Mi' } } },
  };
}
