/** What we refuse. Objects come after their schema was asked: they have the shape of their kind. */
import type { AdmissionRequest, Answer } from '#admission/review.ts';
import type { Configuration } from '#api/kubevirt/configuration.ts';
import type { KubeVirt } from '#api/kubevirt/kind.ts';
import { SYSTEM_NAMESPACE } from '#api/names.ts';
import { validateKubeVirt } from '#api/validation/validate-kubevirt.ts';
import { validateVirtualMachineInstance } from '#api/validation/validate-virtual-machine-instance.ts';
import { validateVirtualMachine, virtualMachineWarnings } from '#api/validation/validate-virtual-machine.ts';
import type { VirtualMachine } from '#api/virtual-machine/kind.ts';
import type { VirtualMachineInstance } from '#api/virtual-machine-instance/kind.ts';
import type { KubeObject } from '#kube/meta.ts';

/** What the answers depend on beside the review; the server reads it. */
export interface Lookup {
  configuration(): Configuration;
  /** `namespace/name` of every KubeVirt object. */
  kubevirts(): readonly string[];
}

/** Who may do to instances what people may not. */
const TRUSTED = new Set(
  ['vm-controller', 'vmi-controller', 'selfsame-subresources'].map(
    (account) => `system:serviceaccount:${SYSTEM_NAMESPACE}:${account}`,
  ),
);

export function reviewVirtualMachine(request: AdmissionRequest, lookup: Lookup): Answer {
  const { object: vm, old } = written<VirtualMachine>(request);
  if (vm === undefined) return {};
  const errors = validateVirtualMachine(vm, { old, configuration: lookup.configuration() });
  return { errors, warnings: virtualMachineWarnings(vm) };
}

export function reviewVirtualMachineInstance(request: AdmissionRequest, lookup: Lookup): Answer {
  const { object: vmi, old } = written<VirtualMachineInstance>(request);
  if (vmi === undefined) return {};
  const trusted = TRUSTED.has(request.user);
  return { errors: validateVirtualMachineInstance(vmi, { old, trusted, configuration: lookup.configuration() }) };
}

export function reviewKubeVirt(request: AdmissionRequest, lookup: Lookup): Answer {
  const { object: kubevirt, old } = written<KubeVirt>(request);
  return kubevirt === undefined ? {} : { errors: validateKubeVirt(kubevirt, { old, present: lookup.kubevirts() }) };
}

/** Nothing for a delete. */
function written<T extends KubeObject>({ operation, object, oldObject }: AdmissionRequest): { object?: T; old?: T } {
  if (operation !== 'CREATE' && operation !== 'UPDATE') return {};
  return { object: object as T | undefined, old: oldObject as T | undefined };
}
