import { hyperv } from '#api/domain/hyperv.ts';
import { bool, obj, type Infer } from '#kube/schema-dsl.ts';

const enabled = bool({ description: 'Defaults to true.' });

export const features = obj({
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

export type Features = Infer<typeof features>;
