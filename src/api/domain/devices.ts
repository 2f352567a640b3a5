import { disk } from '#api/domain/disk.ts';
import { clientPassthrough, inputs, sound, watchdog } from '#api/domain/hardware.ts';
import { networkInterface } from '#api/domain/interface.ts';
import { video } from '#api/domain/video.ts';
import { bool, list, obj, type Infer } from '#kube/schema-dsl.ts';

export const devices = obj({
  disks: list(disk, { maxItems: 256 }),
  interfaces: list(networkInterface, { maxItems: 256 }),
  tpm: obj({
    enabled: bool({ description: 'On unless set to false.' }),
    persistent: bool({ description: 'Whether its content outlives a restart.' }),
  }),
  rng: obj({}, { description: 'A source of entropy.' }),
  video,
  sound,
  watchdog,
  inputs,
  clientPassthrough,
  blockMultiQueue: bool({
    description: 'Disks on the bus virtio, and the SCSI controller, have a queue for each processor.',
  }),
  networkInterfaceMultiqueue: bool({
    description: 'Interfaces of the model virtio on a bridge have a queue for each processor.',
  }),
  autoattachInputDevice: bool({ description: 'A tablet where no input is named; off unless set to true.' }),
  autoattachSerialConsole: bool({ description: 'On unless set to false.' }),
  autoattachMemBalloon: bool({ description: 'On unless set to false.' }),
  autoattachGraphicsDevice: bool({
    description:
      'A video card and a VNC display. On in new VMs; one that has run without keeps to that unless set to true.',
  }),
  autoattachPodInterface: bool({
    description: 'A masquerade interface where no interface and no network is named; on unless set to false.',
  }),
});

export type Devices = Infer<typeof devices>;
