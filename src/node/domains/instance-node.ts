/** On which node an instance is: only that node's agent may tell anything of it. Pure. */
import { NODE_NAME_LABEL } from '#api/names.ts';
import type { VirtualMachineInstance } from '#api/virtual-machine-instance/kind.ts';

export function isOn({ metadata, status }: VirtualMachineInstance, node: string): boolean {
  return (status?.nodeName || metadata.labels?.[NODE_NAME_LABEL]) === node;
}
