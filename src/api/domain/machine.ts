import { obj, str, type Infer } from '#kube/schema-dsl.ts';

export const machine = obj({
  type: str({
    nullable: true,
    description:
      'A machine type such as pc-q35-7.2, or an alias such as q35. If empty, the default of the KubeVirt object is written here when the VM starts.',
  }),
});

export type MachineSpec = Infer<typeof machine>;
