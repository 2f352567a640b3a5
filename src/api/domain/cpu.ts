import { int32, obj, str, type Infer } from '#kube/schema-dsl.ts';

export const cpu = obj({
  sockets: int32({ minimum: 1, maximum: 512, description: 'Sockets; 1 unless set.' }),
  cores: int32({ minimum: 1, maximum: 512, description: 'Cores of each socket; 1 unless set.' }),
  threads: int32({ minimum: 1, maximum: 512, description: 'Threads of each core; 1 unless set.' }),
  model: str({ description: 'host-model (unless set), host-passthrough, or a model that QEMU knows by name.' }),
});

export type Cpu = Infer<typeof cpu>;
