/** Validates a VirtualMachineInstance. Pure; returns all errors. */
import type { Configuration } from '#api/kubevirt/configuration.ts';
import { findNewErrors } from '#api/validation/new-errors.ts';
import { checkNetworkNamespaces } from '#api/validation/devices/networks.ts';
import { checkPermittedLuns } from '#api/validation/devices/direct-luns.ts';
import { checkHotplug, RESTRICTED } from '#api/validation/devices/hotplug.ts';
import { checkInstanceSpec } from '#api/validation/kinds/instance-rules.ts';
import { checkReservedLabels } from '#api/validation/reserved-labels.ts';
import { checkUnknownFields } from '#api/validation/unknown-fields.ts';
import type { ValidationContext } from '#api/validation/kinds/validate-virtual-machine.ts';
import type { VirtualMachineInstance } from '#api/virtual-machine-instance/kind.ts';
import { vmiSpec, type VmiSpec } from '#api/virtual-machine-instance/spec.ts';
import { deepEqual } from '#kube/deep.ts';
import { forbiddenField, invalidValue, requiredValue, type FieldError } from '#kube/field-error.ts';
import { labelValueErrors } from '#kube/names.ts';

interface InstanceContext extends ValidationContext<VirtualMachineInstance> {
  /** True if the request comes from one of our own components, which may make more changes than users. */
  readonly trusted: boolean;
  /** True if the component may hotplug devices. */
  readonly hotplugs?: boolean;
}

/**
 * The spec of an instance is immutable except for its grace period and hotplugged devices, which only our own
 * components may change.
 */
export function validateVirtualMachineInstance(
  vmi: VirtualMachineInstance,
  { old, configuration, trusted, hotplugs = false }: InstanceContext,
): FieldError[] {
  const labels = trusted
    ? []
    : checkReservedLabels(vmi.metadata.labels, old?.metadata.labels, 'metadata.labels', old !== undefined);
  const { namespace } = vmi.metadata;
  if (old !== undefined) {
    const refused = checkUpdate(vmi.spec, old.spec, { trusted, hotplugs });
    const errors =
      refused.length > 0
        ? refused
        : findNewErrors(vmi.spec, old.spec, (spec) => checkSpec(spec, configuration, namespace));
    return [...labels, ...errors];
  }
  const name = vmi.metadata.name ?? '';
  return [
    ...labelValueErrors(name).map((text) => invalidValue('metadata.name', name, text)),
    ...labels,
    ...checkSpec(vmi.spec, configuration, namespace),
    // LUNs of a VM were checked when the VM was written.
    ...(trusted ? [] : checkPermittedLuns(vmi.spec ?? {}, 'spec', configuration)),
  ];
}

function checkSpec(spec: VmiSpec, configuration: Configuration, namespace: string | undefined): FieldError[] {
  const errors = checkUnknownFields(vmiSpec, spec, 'spec', '');
  if (spec?.domain === undefined) return [...errors, requiredValue('spec.domain')];
  return [
    ...errors,
    ...checkInstanceSpec(spec, 'spec', configuration),
    ...checkNetworkNamespaces(spec, 'spec', namespace),
  ];
}

function checkUpdate(
  spec: VmiSpec,
  old: VmiSpec,
  { trusted, hotplugs }: { readonly trusted: boolean; readonly hotplugs: boolean },
): FieldError[] {
  const allowed = trusted ? { terminationGracePeriodSeconds: spec.terminationGracePeriodSeconds } : {};
  const expected = { ...old, ...allowed };
  if (deepEqual(spec, expected)) return [];
  return hotplugs ? checkHotplug(spec, expected) : [forbiddenField('spec', RESTRICTED)];
}
