import type { Resources } from '#api/domain/memory.ts';
import { parseQuantity, findQuantityError, quantityToNumber } from '#kube/quantity.ts';
import { int32, list, obj, oneOf, str, type Infer } from '#kube/schema-dsl.ts';

/**
 * As in libvirt: `optional` uses the feature if the node has it, `forbid` excludes nodes that have it, `disable` hides
 * it.
 */
const CPU_POLICIES = ['force', 'require', 'optional', 'disable', 'forbid'] as const;

export const cpu = obj({
  sockets: int32({ minimum: 1, maximum: 512, description: 'Number of sockets. Defaults to 1.' }),
  cores: int32({ minimum: 1, maximum: 512, description: 'Number of cores per socket. Defaults to 1.' }),
  threads: int32({ minimum: 1, maximum: 512, description: 'Number of threads per core. Defaults to 1.' }),
  features: list(
    obj(
      {
        name: str({ minLength: 1, maxLength: 63, pattern: '^[a-z0-9][a-z0-9_.-]*$' }),
        policy: oneOf(CPU_POLICIES, { description: 'Defaults to require.' }),
      },
      { required: ['name'] },
    ),
    { maxItems: 256, description: 'CPU features in addition to those of the model: avx2, vmx ...' },
  ),
  model: str({ description: 'host-model, host-passthrough, or the name of a QEMU CPU model. Defaults to host-model.' }),
});

type Cpu = Infer<typeof cpu>;

interface Topology {
  readonly sockets: number;
  readonly cores: number;
  readonly threads: number;
}

interface Processors {
  readonly cpu?: Cpu | undefined;
  readonly resources?: Resources | undefined;
}

/** Returns the topology of the spec. Without one, the CPUs of the resources become sockets, as in KubeVirt. */
export function topologyOf({ cpu: topology, resources }: Processors): Topology {
  const { sockets, cores, threads } = topology ?? {};
  const scheduled = resources?.limits?.['cpu'] ?? resources?.requests?.['cpu'];
  const isUnset = (sockets ?? cores ?? threads) === undefined;
  if (isUnset && scheduled !== undefined && findQuantityError(scheduled) === undefined) {
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
