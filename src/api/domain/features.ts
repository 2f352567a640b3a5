import { bool, obj, type Infer } from '#kube/schema-dsl.ts';

export const features = obj({
  acpi: obj(
    { enabled: bool() },
    { description: 'On unless disabled; without it a guest cannot be asked to shut down.' },
  ),
  apic: obj({ enabled: bool() }, { description: 'Always on.' }),
  smm: obj({ enabled: bool() }, { description: 'System management mode; what secure boot stands on.' }),
});

export type Features = Infer<typeof features>;
