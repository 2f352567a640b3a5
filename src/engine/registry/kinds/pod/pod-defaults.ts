/** Defaults that apply to pods but not to pod templates. */
import { defaultPodSpec } from '#engine/registry/kinds/pod-spec/pod-spec-defaults.ts';
import type { EnginePodSpec } from '#engine/registry/kinds/pod-spec/pod-spec.ts';
import { records } from '#engine/registry/kinds/shared/reading.ts';
import { isRecord } from '#kube/meta.ts';

export function defaultPod(spec: EnginePodSpec | undefined): void {
  if (!isRecord(spec)) return;
  defaultPodSpec(spec);
  spec.enableServiceLinks ??= true;
  if ((spec.terminationGracePeriodSeconds ?? 0) < 0) spec.terminationGracePeriodSeconds = 1;
  const containers = [...records(spec.containers), ...records(spec.initContainers)];
  for (const { resources, ports } of containers) {
    if (isRecord(resources)) defaultRequestsToLimits(resources);
    if (spec.hostNetwork !== true) continue;
    for (const port of records(ports)) {
      if (port.containerPort) port.hostPort ||= port.containerPort;
    }
  }
}

/** Sets missing requests to the limits. */
function defaultRequestsToLimits(resources: NonNullable<EnginePodSpec['resources']>): void {
  const { limits } = resources;
  if (!isRecord(limits)) return;
  resources.requests = { ...limits, ...resources.requests };
}

/** Keeps the fields that admission set, if an update omits them. */
export function keepAdmittedFields(spec: EnginePodSpec | undefined, old: EnginePodSpec): void {
  if (!isRecord(spec)) return;
  if (old.priority !== undefined) spec.priority ??= old.priority;
  if (old.preemptionPolicy !== undefined) spec.preemptionPolicy ??= old.preemptionPolicy;
}
