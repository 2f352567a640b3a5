import type { Resources } from '#api/domain/memory.ts';
import { parseQuantity, quantityFault, quantityToNumber } from '#kube/quantity.ts';
import { int32, list, obj, oneOf, str, type Infer } from '#kube/schema-dsl.ts';

/** As in libvirt: `optional` only where the node has it; `forbid` refuses nodes that have it, `disable` takes it away. */
export const CPU_POLICIES = ['force', 'require', 'optional', 'disable', 'forbid'] as const;

export const cpu = obj({
  sockets: int32({ minimum: 1, maximum: 512, description: 'Sockets; 1 unless set.' }),
  cores: int32({ minimum: 1, maximum: 512, description: 'Cores of each socket; 1 unless set.' }),
  threads: int32({ minimum: 1, maximum: 512, description: 'Threads of each core; 1 unless set.' }),
  features: list(
    obj(
      {
        name: str({ minLength: 1, maxLength: 63, pattern: '^[a-z0-9][a-z0-9_.-]*$' }),
        policy: oneOf(CPU_POLICIES, { description: 'require unless set.' }),
      },
      { required: ['name'] },
    ),
    { maxItems: 256, description: 'What the processor can, beside what its model says: avx2, vmx ...' },
  ),
  model: str({ description: 'host-model (unless set), host-passthrough, or a model that QEMU knows by name.' }),
});

export type Cpu = Infer<typeof cpu>;

export interface Topology {
  readonly sockets: number;
  readonly cores: number;
  readonly threads: number;
}

interface Processors {
  readonly cpu?: Cpu | undefined;
  readonly resources?: Resources | undefined;
}

/** As in KubeVirt: where there is no topology, the CPUs that are asked of the scheduler become sockets. */
export function topologyOf({ cpu: asked, resources }: Processors): Topology {
  const { sockets, cores, threads } = asked ?? {};
  const scheduled = resources?.limits?.['cpu'] ?? resources?.requests?.['cpu'];
  const isOpen = (sockets ?? cores ?? threads) === undefined;
  if (isOpen && scheduled !== undefined && quantityFault(scheduled) === undefined) {
    return {
      sockets: Math.max(1, Math.ceil(quantityToNumber(parseQuantity(String(scheduled))))),
      cores: 1,
      threads: 1,
    };
  }
  return { sockets: sockets ?? 1, cores: cores ?? 1, threads: threads ?? 1 };
}

export function vcpusOf(processors: Processors): number {
  const { sockets, cores, threads } = topologyOf(processors);
  return sockets * cores * threads;
}
