import { chassis } from '#api/domain/chassis.ts';
import { clock } from '#api/domain/clock.ts';
import { cpu } from '#api/domain/cpu.ts';
import { devices } from '#api/domain/devices.ts';
import { features } from '#api/domain/features.ts';
import { firmware } from '#api/domain/firmware.ts';
import { machine } from '#api/domain/machine.ts';
import { memory, resources } from '#api/domain/memory.ts';
import { obj, oneOf, type Infer } from '#kube/schema-dsl.ts';

export const IO_THREADS_POLICIES = ['shared', 'auto'] as const;

/** Schema of the guest's hardware. */
export const domain = obj({
  ...{ cpu, memory, resources, machine, firmware, features, clock, chassis, devices },
  ioThreadsPolicy: oneOf(IO_THREADS_POLICIES, {
    description:
      'shared: one I/O thread for all virtio disks without a thread of their own; auto: up to two I/O threads per vCPU.',
  }),
});

export type DomainSpec = Infer<typeof domain>;
