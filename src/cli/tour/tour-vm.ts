/**
 * The VM of the tour, with persistent EFI and TPM, a disk and an interface, and the claim of the disk that is hot-plugged.
 * A test ensures that examples/tour-vm.yaml contains the same VM, for users who run the steps manually.
 */
import type { VirtualMachine } from '#api/virtual-machine/kind.ts';
import { GUEST_IMAGE } from '#api/names.ts';
import type { PersistentVolumeClaim } from '#kube/core-kinds.ts';

export const VM_NAME = 'selfsame';
export const DISK_CLAIM = 'selfsame-data';
export const PLUGGED = 'plugged';
export const SNAPSHOT = 'then';
export const RESTORE = 'back-to-then';
export const MIGRATION = 'move';
/** The serial number that the tour sets. */
export const SERIAL = 'tour-serial';

export const tourVm = (machineType: string): Pick<VirtualMachine, 'metadata' | 'spec'> => ({
  metadata: { name: VM_NAME },
  spec: {
    runStrategy: 'Always',
    template: {
      spec: {
        // Short, because firmware that still boots ignores the power button, and the user would wait for it at Ctrl-C.
        terminationGracePeriodSeconds: 10,
        domain: {
          machine: { type: machineType },
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
});

export function tourClaim(name: string): Pick<PersistentVolumeClaim, 'metadata' | 'spec'> {
  return {
    metadata: { name },
    spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '16Mi' } } },
  };
}
