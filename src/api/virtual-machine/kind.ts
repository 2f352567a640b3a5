import type { CustomKind } from '#api/custom-kind.ts';
import { KUBEVIRT_GROUP } from '#api/names.ts';
import { vmSpec, vmStatus, type VmSpec, type VmStatus } from '#api/virtual-machine/schema.ts';
import type { VmiSpec } from '#api/virtual-machine-instance/spec.ts';
import type { KubeObject, ResourceType } from '#kube/meta.ts';

export interface VirtualMachine extends KubeObject {
  spec: VmSpec;
  status?: VmStatus;
}

export const VIRTUAL_MACHINES: ResourceType<VirtualMachine> = {
  group: KUBEVIRT_GROUP,
  version: 'v1',
  kind: 'VirtualMachine',
  plural: 'virtualmachines',
  namespaced: true,
};

export const virtualMachine: CustomKind<VirtualMachine> = {
  type: VIRTUAL_MACHINES,
  singular: 'virtualmachine',
  shortNames: ['vm', 'vms'],
  categories: ['all'],
  description: 'The desired state of a virtual machine, running or not.',
  spec: vmSpec,
  status: vmStatus,
  columns: [
    { name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp' },
    { name: 'Status', type: 'string', jsonPath: '.status.printableStatus' },
    { name: 'Ready', type: 'string', jsonPath: ".status.conditions[?(@.type=='Ready')].status" },
    { name: 'Protected', type: 'boolean', jsonPath: '.status.deleteProtected', wide: true },
  ],
};

/** Returns the spec of the instances of a VM. */
export function templateSpec({ spec }: Pick<VirtualMachine, 'spec'>): VmiSpec {
  return spec.template.spec ?? { domain: {} };
}
