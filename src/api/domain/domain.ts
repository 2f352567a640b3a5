import { chassis } from '#api/domain/chassis.ts';
import { clock } from '#api/domain/clock.ts';
import { cpu } from '#api/domain/cpu.ts';
import { devices } from '#api/domain/devices.ts';
import { firmware } from '#api/domain/firmware.ts';
import { memory, resources } from '#api/domain/memory.ts';
import { obj, oneOf, type Infer, bool, str } from '#kube/schema-dsl.ts';
import { hyperv } from '#api/domain/hyperv.ts';

const IO_THREADS_POLICIES = ['shared', 'auto'] as const;

const enabled = bool({ description: 'Defaults to true.' });

const features = obj({
  acpi: obj(
    { enabled: bool() },
    { description: 'Defaults to enabled. Without ACPI a guest cannot be asked to shut down.' },
  ),
  apic: obj({ enabled: bool() }, { description: 'Always on.' }),
  smm: obj({ enabled: bool() }, { description: 'System management mode, which secure boot requires.' }),
  hyperv,
  hypervPassthrough: obj({ enabled }, { description: 'Enables all Hyper-V enlightenments that the node supports.' }),
  kvm: obj({ hidden: bool({ description: 'Hides KVM from the guest. Defaults to false.' }) }),
  pvspinlock: obj({ enabled }, { description: 'Paravirtual spinlocks.' }),
});

const machine = obj({
  type: str({
    nullable: true,
    description:
      'A machine type such as pc-q35-7.2, or an alias such as q35. If empty, the default of the KubeVirt object is written here when the VM starts.',
  }),
});

/** Schema of the guest's hardware. */
export const domain = obj({
  ...{ cpu, memory, resources, machine, firmware, features, clock, chassis, devices },
  ioThreadsPolicy: oneOf(IO_THREADS_POLICIES, {
    description:
      'shared: one I/O thread for all virtio disks without a thread of their own; auto: up to two I/O threads per vCPU.',
  }),
});

export type DomainSpec = Infer<typeof domain>;
