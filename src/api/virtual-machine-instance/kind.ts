import type { CustomKind } from '#api/custom-kinds/custom-kind.ts';
import { KUBEVIRT_GROUP, NODE_NAME_LABEL } from '#api/names.ts';
import { vmiSpec, type VmiSpec } from '#api/virtual-machine-instance/spec.ts';
import { vmiStatus, type VmiStatus } from '#api/virtual-machine-instance/status.ts';
import type { KubeObject, ResourceType } from '#kube/meta.ts';

export interface VirtualMachineInstance extends KubeObject {
  spec: VmiSpec;
  status?: VmiStatus;
}

export const VIRTUAL_MACHINE_INSTANCES: ResourceType<VirtualMachineInstance> = {
  group: KUBEVIRT_GROUP,
  version: 'v1',
  kind: 'VirtualMachineInstance',
  plural: 'virtualmachineinstances',
  namespaced: true,
};

export const virtualMachineInstance: CustomKind<VirtualMachineInstance> = {
  type: VIRTUAL_MACHINE_INSTANCES,
  singular: 'virtualmachineinstance',
  shortNames: ['vmi', 'vmis'],
  categories: ['all'],
  description: 'One run of a virtual machine, from start to stop.',
  nodes: {
    label: NODE_NAME_LABEL,
    fields: ['status.nodeName', 'status.migrationState.sourceNode', 'status.migrationState.targetNode'],
  },
  spec: vmiSpec,
  status: vmiStatus,
  columns: [
    { name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp' },
    { name: 'Phase', type: 'string', jsonPath: '.status.phase' },
    { name: 'IP', type: 'string', jsonPath: '.status.interfaces[0].ipAddress' },
    { name: 'NodeName', type: 'string', jsonPath: '.status.nodeName' },
    { name: 'Ready', type: 'string', jsonPath: ".status.conditions[?(@.type=='Ready')].status" },
    {
      name: 'Live-Migratable',
      type: 'string',
      jsonPath: ".status.conditions[?(@.type=='LiveMigratable')].status",
      wide: true,
    },
    { name: 'Paused', type: 'string', jsonPath: ".status.conditions[?(@.type=='Paused')].status", wide: true },
  ],
};

/** Reports whether the instance has ended and will not run again. */
export function isFinal(vmi: Pick<VirtualMachineInstance, 'status'>): boolean {
  return vmi.status?.phase === 'Succeeded' || vmi.status?.phase === 'Failed';
}
