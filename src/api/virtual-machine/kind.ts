import type { CustomKind } from '#api/custom-kinds/custom-kind.ts';
import { KUBEVIRT_GROUP } from '#api/names.ts';
import type { VmiSpec } from '#api/virtual-machine-instance/spec.ts';
import {
  vmSpec,
  vmStatus,
  type VmSpec,
  type VmStatus,
  type RunStrategy,
  RUN_STRATEGIES,
} from '#api/virtual-machine/schema.ts';
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

/**
 * Returns the run strategy of the VM. Undefined if neither field is set, if both are, or if the strategy is unknown. An
 * empty strategy counts as unset.
 */
export function runStrategyOf({ spec }: Pick<VirtualMachine, 'spec'>): RunStrategy | undefined {
  const { running, runStrategy } = spec;
  if (running !== undefined && runStrategy) return undefined;
  if (running !== undefined) return running ? 'Always' : 'Halted';
  return RUN_STRATEGIES.find((strategy) => strategy === runStrategy);
}
