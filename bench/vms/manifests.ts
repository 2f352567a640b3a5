/** The measured VMs. */
import { readFileSync } from 'node:fs';
import { parse } from 'yaml';
import type { VirtualMachine } from '#api/virtual-machine/kind.ts';

export const NAMESPACE = 'default';

const EXAMPLE = new URL('../../examples/vm.yaml', import.meta.url);

/**
 * Returns examples/vm.yaml under another name. Without a grace period: a stop kills the guest and does not wait until it
 * has booted.
 */
export function exampleVm(name: string): VirtualMachine {
  const vm = parse(readFileSync(EXAMPLE, 'utf8')) as Example;
  vm.metadata = { name, namespace: NAMESPACE };
  vm.spec.template.spec.terminationGracePeriodSeconds = 0;
  return vm as unknown as VirtualMachine;
}

interface Example {
  metadata: { name: string; namespace?: string };
  spec: { template: { spec: { terminationGracePeriodSeconds?: number } } };
}

/** Returns the example VM with the least memory that a guest may have, and run strategy Manual. */
export function smallVm(name: string): VirtualMachine {
  const vm = exampleVm(name) as unknown as SmallExample;
  vm.spec.runStrategy = 'Manual';
  vm.spec.template.spec.domain.memory.guest = '72Mi';
  return vm as unknown as VirtualMachine;
}

interface SmallExample {
  spec: { runStrategy: string; template: { spec: { domain: { memory: { guest: string } } } } };
}
