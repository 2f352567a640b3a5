/** The node of an instance. Only the agent of that node may write its part of the status. */
import { NODE_NAME_LABEL } from '#api/names.ts';
import type { VirtualMachineInstance } from '#api/virtual-machine-instance/kind.ts';

export function isInstanceOnNode({ metadata, status }: VirtualMachineInstance, node: string): boolean {
  return (status?.nodeName || metadata.labels?.[NODE_NAME_LABEL]) === node;
}
