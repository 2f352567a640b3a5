import { cpu } from '#api/domain/cpu.ts';
import { devices } from '#api/domain/devices.ts';
import { features } from '#api/domain/features.ts';
import { firmware } from '#api/domain/firmware.ts';
import { machine } from '#api/domain/machine.ts';
import { memory, resources } from '#api/domain/memory.ts';
import { obj, type Infer } from '#kube/schema-dsl.ts';

/** The guest's hardware as people ask for it. */
export const domain = obj({ cpu, memory, resources, machine, firmware, features, devices });

export type Domain = Infer<typeof domain>;
