/** Validates a VirtualMachine. Pure; returns all errors. */
import type { Configuration } from '#api/kubevirt/configuration.ts';
import { findNewErrors } from '#api/validation/new-errors.ts';
import { chipsetOfSpec } from '#api/validation/devices/chipset-of-spec.ts';
import { checkProtectionReason, protectionWarnings } from '#api/validation/delete-protection.ts';
import { checkNetworkNamespaces } from '#api/validation/devices/networks.ts';
import { checkPermittedLuns } from '#api/validation/devices/direct-luns.ts';
import { checkHold, type TrustedWriter } from '#api/validation/hold.ts';
import { checkImportedDevices } from '#api/validation/imported-devices.ts';
import { checkInstanceSpec } from '#api/validation/kinds/instance-rules.ts';
import { checkAnnotationMap, checkLabelMap } from '#api/validation/spec/placement.ts';
import { checkReservedLabels } from '#api/validation/reserved-labels.ts';
import { checkRunStrategy, runStrategyWarnings } from '#api/validation/run-strategy.ts';
import { checkUnknownFields } from '#api/validation/unknown-fields.ts';
import type { VirtualMachine } from '#api/virtual-machine/kind.ts';
import { vmSpec, type VmSpec } from '#api/virtual-machine/schema.ts';
import { forbiddenField, invalidValue, requiredValue, type FieldError } from '#kube/field-error.ts';
import { labelValueErrors } from '#kube/names.ts';

export interface ValidationContext<T> {
  /** The stored object; absent at creation. */
  readonly old?: T;
  readonly configuration: Configuration;
}

interface VmContext extends ValidationContext<VirtualMachine> {
  /** The controller that makes the request; absent for other users. */
  readonly writer?: TrustedWriter;
}

export function validateVirtualMachine(vm: VirtualMachine, { old, configuration, writer }: VmContext): FieldError[] {
  const name = vm.metadata.name ?? '';
  // The name becomes a label value of launcher pods.
  const nameErrors = old === undefined ? labelValueErrors(name) : [];
  return [
    ...nameErrors.map((text) => invalidValue('metadata.name', name, text)),
    ...(old === undefined ? [] : checkHold(vm, old, writer)),
    ...checkProtectionReason(vm, old),
    // A restore brings back all annotations of the VM.
    ...(writer === 'restore-controller' ? [] : checkImportedDevices(vm, old)),
    ...findNewErrors(vm.spec, old?.spec, (spec) => [
      ...checkTemplateName(spec, vm),
      ...checkSpec(spec, configuration),
      ...checkNetworkNamespaces(spec.template?.spec, 'spec.template.spec', vm.metadata.namespace),
    ]),
  ];
}

/** Refuses a template with another name or namespace: an instance always has those of its VM. */
function checkTemplateName({ template }: VmSpec, { metadata }: VirtualMachine): FieldError[] {
  return (['name', 'namespace'] as const).flatMap((part) => {
    const value = template?.metadata?.[part];
    if (!value || value === metadata[part]) return [];
    return [forbiddenField(`spec.template.metadata.${part}`, `the instance has the ${part} of its VM`)];
  });
}

function checkSpec(spec: VmSpec, configuration: Configuration): FieldError[] {
  const template = spec.template;
  const metadata = template?.metadata;
  const errors = [
    ...checkUnknownFields(vmSpec, spec, 'spec', 'spec.template.'),
    ...checkRunStrategy(spec),
    ...checkLabelMap(metadata?.labels, 'spec.template.metadata.labels'),
    ...checkReservedLabels(metadata?.labels, undefined, 'spec.template.metadata.labels'),
    ...checkAnnotationMap(metadata?.annotations, 'spec.template.metadata.annotations'),
  ];
  // The schema does not require the domain, because KubeVirt's does not.
  if (template?.spec?.domain === undefined) return [...errors, requiredValue('spec.template.spec.domain')];
  const path = 'spec.template.spec';
  return [
    ...errors,
    ...checkInstanceSpec(template.spec, path, configuration),
    ...checkPermittedLuns(template.spec, path, configuration),
  ];
}

/** Returns the warnings about a VM. `old` is the stored object; absent at creation. */
export function virtualMachineWarnings(
  vm: VirtualMachine,
  { old, configuration }: ValidationContext<VirtualMachine>,
): string[] {
  return [
    ...runStrategyWarnings(vm.spec),
    ...protectionWarnings(vm, old),
    ...(old === undefined ? [] : chipsetWarnings(vm, old, configuration)),
  ];
}

/** Warns about a change of the chipset: addresses of one chipset are not valid on another, so every device moves. */
function chipsetWarnings(vm: VirtualMachine, old: VirtualMachine, configuration: Configuration): string[] {
  const [now, before] = [vm, old].map(({ spec }) => {
    const instance = spec.template?.spec;
    return instance?.domain === undefined ? undefined : chipsetOfSpec(instance, configuration);
  });
  if (now === undefined || before === undefined || now === before) return [];
  const name = vm.metadata.name ?? '';
  return [
    `spec.template.spec.domain.machine.type: the chipset changes from ${before} to ${now}: all devices get new addresses at the next start; virtctl identity diff ${name} shows them`,
  ];
}
