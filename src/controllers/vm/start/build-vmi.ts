/** Builds the instance of a VM that starts now, from its template, its identity and the cluster configuration. Pure. */
import type { Configuration } from '#api/kubevirt/configuration.ts';
import { SMBIOS_ANNOTATION, smbiosAnnotation } from '#api/identity/smbios-annotation.ts';
import type { GuestNetwork } from '#api/network/guest-network.ts';
import { requestAnnotation } from '#api/network/owned-addresses.ts';
import { VM_FINALIZER, VM_NAME_LABEL, VMI_FINALIZER } from '#api/names.ts';
import { type VirtualMachine, templateSpec } from '#api/virtual-machine/kind.ts';
import { vmOwnerReference } from '#api/virtual-machine/owner.ts';
import type { IdentitySpec } from '#api/virtual-machine-identity/kind.ts';
import { VIRTUAL_MACHINE_INSTANCES, type VirtualMachineInstance } from '#api/virtual-machine-instance/kind.ts';
import type { VmiSpec } from '#api/virtual-machine-instance/spec.ts';
import { interfacesOf, networksOf } from '#api/devices/attached-interfaces.ts';
import { apiVersionOf, type Stored } from '#kube/meta.ts';

/** An annotation of instances: the generation of the VM from which the instance was built. */
export const VM_GENERATION_ANNOTATION = 'kubevirt.io/vm-generation';
const MAX_LABEL = 63;

/** Returns the instance. `identity` must be complete: the result of resolveIdentity. */
export function buildVmi(
  vm: Stored<VirtualMachine>,
  identity: IdentitySpec,
  configuration: Configuration,
  { paused = false, network }: { paused?: boolean; network?: GuestNetwork | undefined } = {},
): VirtualMachineInstance {
  const { name, namespace, generation = 0 } = vm.metadata;
  const { labels, annotations: { [SMBIOS_ANNOTATION]: _others, ...annotations } = {} } =
    vm.spec.template.metadata ?? {};
  const spec = buildSpec(templateSpec(vm), identity, configuration);
  return {
    apiVersion: apiVersionOf(VIRTUAL_MACHINE_INSTANCES),
    kind: VIRTUAL_MACHINE_INSTANCES.kind,
    metadata: {
      name,
      namespace,
      labels: { ...labels, ...(name.length <= MAX_LABEL ? { [VM_NAME_LABEL]: name } : {}) },
      annotations: {
        ...annotations,
        ...smbiosAnnotation(identity.smbios),
        ...requestAnnotation(vm, identity, network),
        [VM_GENERATION_ANNOTATION]: String(generation),
      },
      ownerReferences: [vmOwnerReference(vm)],
      finalizers: [VMI_FINALIZER, VM_FINALIZER],
    },
    spec: paused ? { ...spec, startStrategy: 'Paused' } : spec,
  };
}

function buildSpec(template: VmiSpec, identity: IdentitySpec, { defaultMachineType }: Configuration): VmiSpec {
  const { domain } = template;
  const macs = new Map(identity.interfaces?.map(({ name, macAddress }) => [name, macAddress]));
  const interfaces = interfacesOf(template).map((nic) =>
    nic.macAddress ? nic : { ...nic, ...mac(macs.get(nic.name)) },
  );
  const networks = networksOf(template);
  const devices = { ...domain.devices, ...unlessEmpty('interfaces', interfaces) };
  return {
    ...template,
    domain: {
      ...domain,
      ...(Object.keys(devices).length === 0 ? {} : { devices }),
      machine: { ...domain.machine, type: domain.machine?.type || defaultMachineType },
      firmware: { ...domain.firmware, ...identity.firmware },
    },
    ...unlessEmpty('networks', networks),
  };
}

function mac(macAddress: string | undefined): { macAddress?: string } {
  return macAddress === undefined ? {} : { macAddress };
}

function unlessEmpty<K extends string, T>(key: K, list: readonly T[]): { [key in K]?: T[] } {
  return (list.length === 0 ? {} : { [key]: [...list] }) as { [key in K]?: T[] };
}
