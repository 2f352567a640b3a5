/** Defines the processors of a guest: topology, model and features. */
import { topologyOf } from '#api/domain/cpu.ts';
import type { DomainSpec } from '#api/domain/domain.ts';
import { invalidValue, type FieldError } from '#kube/field-error.ts';
import { defineCpuFeatures } from '#node/definition/cpu-features.ts';
import type { DomainDefinition } from '#node/hardware/domain-definition.ts';
import type { Capabilities, MachineType } from '#node/hardware/capabilities.ts';

const HOST_MODELS = new Set(['host-model', 'host-passthrough']);
/** Excludes commas, with which QEMU separates a model from its features. */
const MODEL = /^[A-Za-z0-9][A-Za-z0-9._+-]{0,62}$/;

export function defineCpu(
  domain: DomainSpec,
  capabilities: Capabilities,
  machine: MachineType | undefined,
  problems: FieldError[],
  omitted: string[] = [],
): DomainDefinition['cpu'] {
  const topology = topologyOf(domain);
  const count = topology.sockets * topology.cores * topology.threads;
  if (machine !== undefined && count > machine.maxCpus) {
    const detail = `${machine.name} has at most ${machine.maxCpus} CPUs`;
    problems.push(invalidValue('spec.domain.cpu', count, detail));
  }
  const model = domain.cpu?.model || 'host-model';
  if (!MODEL.test(model))
    problems.push(invalidValue('spec.domain.cpu.model', model, 'is not a valid name of a CPU model'));
  const hostModel = capabilities.accelerator === 'kvm' ? 'host' : 'max';
  const { features, omitted: omittedFeatures } = defineCpuFeatures(domain, capabilities, problems);
  omitted.push(...omittedFeatures);
  return { ...topology, model: HOST_MODELS.has(model) ? hostModel : model, ...(features && { features }) };
}
