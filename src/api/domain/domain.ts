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

/** The guest's hardware as people ask for it. */
export const domain = obj({
  ...{ cpu, memory, resources, machine, firmware, features, clock, chassis, devices },
  ioThreadsPolicy: oneOf(IO_THREADS_POLICIES, {
    description:
      'shared: one thread for all disks on the bus virtio that have none of their own; auto: up to two for each processor.',
  }),
});

export type Domain = Infer<typeof domain>;
