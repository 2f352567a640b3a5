import { hyperv } from '#api/domain/hyperv.ts';
import { bool, obj, type Infer } from '#kube/schema-dsl.ts';

const enabled = bool({ description: 'On unless set to false.' });

export const features = obj({
  acpi: obj(
    { enabled: bool() },
    { description: 'On unless disabled; without it a guest cannot be asked to shut down.' },
  ),
  apic: obj({ enabled: bool() }, { description: 'Always on.' }),
  smm: obj({ enabled: bool() }, { description: 'System management mode; what secure boot stands on.' }),
  hyperv,
  hypervPassthrough: obj({ enabled }, { description: 'All that the node can do of hyperv.' }),
  kvm: obj({ hidden: bool({ description: 'Whether the guest is not told that it runs on KVM; false unless set.' }) }),
  pvspinlock: obj({ enabled }, { description: 'Spin locks that know of the hypervisor.' }),
});

export type Features = Infer<typeof features>;
