/**
 * The VM of the tour, with persistent EFI and TPM, a disk and an interface, and the claim of the disk that is hot-plugged.
 * A test ensures that examples/tour-vm.yaml contains the same VM, for users who run the steps manually.
 */
import type { VirtualMachine } from '#api/virtual-machine/kind.ts';
import { deriveMac } from '#api/identity/derived-mac.ts';
import { GUEST_IMAGE } from '#api/names.ts';
import type { PersistentVolumeClaim } from '#kube/core-kinds.ts';
import { newUid } from '#lib/ids.ts';

export const VM_NAME = 'selfsame';
export const DISK_CLAIM = 'selfsame-data';
export const PLUGGED = 'plugged';
export const SNAPSHOT = 'then';
export const RESTORE = 'back-to-then';
export const MIGRATION = 'move';
export const INTERFACE = 'default';

/** The values that the tour changes on purpose. */
export interface TourEdits {
  readonly uuid: string;
  readonly serial: string;
  readonly macAddress: string;
}

/** Returns new values, so that two tours on one plane do not share an identity. */
export function newEdits(): TourEdits {
  const uuid = newUid();
  return { uuid, serial: 'tour-serial', macAddress: deriveMac(uuid, INTERFACE) };
}

/** Returns the part of the template that carries the edits. */
export const editedDomain = ({ uuid, serial, macAddress }: TourEdits) => ({
  firmware: { uuid, serial },
  devices: { interfaces: [{ name: INTERFACE, masquerade: {}, macAddress }] },
});

export const TOUR_KERNEL = {
  kernelArgs: 'console=ttyS0 quiet guest.wait=1',
  container: { image: GUEST_IMAGE },
};

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
            kernelBoot: TOUR_KERNEL,
          },
          devices: {
            tpm: { persistent: true },
            disks: [{ name: 'data', disk: { bus: 'virtio' }, serial: 'data' }],
            interfaces: [{ name: INTERFACE, masquerade: {} }],
          },
        },
        networks: [{ name: INTERFACE, pod: {} }],
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
