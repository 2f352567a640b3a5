import { disk } from '#api/domain/disk.ts';
import { clientPassthrough, inputs, sound, watchdog } from '#api/domain/hardware.ts';
import { networkInterface } from '#api/domain/interface.ts';
import { video } from '#api/domain/video.ts';
import { bool, list, obj, type Infer } from '#kube/schema-dsl.ts';

export const devices = obj({
  disks: list(disk, { maxItems: 256 }),
  interfaces: list(networkInterface, { maxItems: 256 }),
  tpm: obj({
    enabled: bool({ description: 'Defaults to true.' }),
    persistent: bool({ description: 'True if the content of the TPM is kept across restarts. Defaults to false.' }),
  }),
  rng: obj({}, { description: 'A virtio random number generator.' }),
  video,
  sound,
  watchdog,
  inputs,
  clientPassthrough,
  blockMultiQueue: bool({
    description: 'Gives virtio disks and the SCSI controller one queue per vCPU.',
  }),
  networkInterfaceMultiqueue: bool({
    description: 'Gives virtio interfaces on a bridge one queue per vCPU.',
  }),
  autoattachInputDevice: bool({ description: 'Adds a tablet if inputs is empty. Defaults to false.' }),
  autoattachSerialConsole: bool({ description: 'Adds a serial console. Defaults to true.' }),
  autoattachMemBalloon: bool({ description: 'Adds a memory balloon. Defaults to true.' }),
  autoattachGraphicsDevice: bool({
    description:
      'Adds a video card and a VNC display. Defaults to true for new VMs; a VM that has run without a video card gets one only if this is true.',
  }),
  autoattachPodInterface: bool({
    description: 'Adds a masquerade interface if interfaces and networks are empty. Defaults to true.',
  }),
});

export type Devices = Infer<typeof devices>;
