/** Validates pod specs, in pods and templates. */
import { checkAffinity } from '#engine/registry/kinds/pod-spec/affinity-rules.ts';
import { checkContainer } from '#engine/registry/kinds/pod-spec/container-rules.ts';
import type { Container } from '#engine/registry/kinds/pod-spec/container.ts';
import {
  checkLabelKey,
  checkLabelEntries,
  checkLabelValue,
  checkName,
  checkUnique,
  INT32_MAX,
} from '#engine/registry/kinds/shared/formats.ts';
import { checkLabelSelector } from '#engine/registry/kinds/meta/label-selector.ts';
import type { EnginePodSpec, PodTemplateSpec } from '#engine/registry/kinds/pod-spec/pod-spec.ts';
import { checkResources } from '#engine/registry/kinds/shared/quantities.ts';
import { sameValue } from '#engine/registry/kinds/shared/reading.ts';
import { checkHooks, forbidHooks } from '#engine/registry/kinds/pod-spec/probe.ts';
import { checkPodVolumes } from '#engine/registry/kinds/volumes/volume-rules.ts';
import {
  duplicateValue,
  type FieldError,
  forbiddenField,
  invalidValue,
  requiredValue,
  tooMany,
} from '#kube/field-error.ts';
import { annotationKeyErrors } from '#kube/names.ts';

type Toleration = NonNullable<EnginePodSpec['tolerations']>[number];

/** More than any node runs in one pod. The status of a pod has an entry for each. */
const MAX_CONTAINERS = 512;

export function checkPodSpec(field: string, spec: EnginePodSpec): FieldError[] {
  const { containers, initContainers = [], ephemeralContainers = [], volumes = [] } = spec;
  const byName = new Map(volumes.map((volume) => [volume.name, volume]));
  const errors: FieldError[] = [];
  if (containers.length === 0) errors.push(requiredValue(`${field}.containers`));
  for (const [sort, list] of Object.entries({ containers, initContainers, ephemeralContainers })) {
    if (list.length > MAX_CONTAINERS) return [tooMany(`${field}.${sort}`, list.length, MAX_CONTAINERS)];
  }
  const names: [string, string][] = [];
  // Regular containers come first: a duplicate name is reported for the other type.
  const sorts = { containers, initContainers, ephemeralContainers };
  for (const [sort, list] of Object.entries(sorts)) {
    for (const [i, container] of list.entries()) {
      errors.push(...checkContainer(`${field}.${sort}[${i}]`, container, byName));
      names.push([`${field}.${sort}[${i}].name`, container.name]);
    }
  }
  return [
    ...errors,
    ...checkUnique(names),
    ...containers.flatMap((container, i) => checkMain(`${field}.containers[${i}]`, container)),
    ...initContainers.flatMap((container, i) => checkInit(`${field}.initContainers[${i}]`, container)),
    ...ephemeralContainers.flatMap((container, i) => checkEphemeral(`${field}.ephemeralContainers[${i}]`, container)),
    ...checkResources(`${field}.resources`, spec.resources),
    // Kubernetes checks an overhead like limits, and names it so.
    ...checkResources(`${field}.overhead`, { limits: spec.overhead }),
    ...checkHostPorts(field, spec),
    ...checkPodVolumes(`${field}.volumes`, volumes),
    ...checkPlacement(field, spec),
    ...checkIdentity(field, spec),
  ];
}

function checkMain(field: string, container: Container): FieldError[] {
  const errors = checkHooks(field, container);
  if (container.restartPolicy === undefined) return errors;
  return [...errors, forbiddenField(`${field}.restartPolicy`, 'may not be set for non-init containers')];
}

/** A sidecar runs beside the main containers and may have probes like them. */
function checkInit(field: string, container: Container): FieldError[] {
  return container.restartPolicy === 'Always' ? checkHooks(field, container) : forbidHooks(field, container);
}

/** The fields of a container that make it a part of the workload. */
const NOT_EPHEMERAL = [
  'lifecycle',
  'livenessProbe',
  'readinessProbe',
  'startupProbe',
  'ports',
  'resources',
  'resizePolicy',
  'restartPolicy',
] as const;

function checkEphemeral(field: string, container: Container): FieldError[] {
  const set = NOT_EPHEMERAL.filter((name) => !sameValue((container as Record<string, unknown>)[name], undefined));
  return set.map((name) => forbiddenField(`${field}.${name}`, 'cannot be set for an Ephemeral Container'));
}

export function checkPodTemplate(field: string, { metadata, spec }: PodTemplateSpec): FieldError[] {
  const errors = checkLabelEntries(`${field}.labels`, metadata?.labels);
  for (const key of Object.keys(metadata?.annotations ?? {})) {
    errors.push(...annotationKeyErrors(key).map((text) => invalidValue(`${field}.annotations`, key, text)));
  }
  if (spec === undefined) return errors;
  if ((spec.ephemeralContainers?.length ?? 0) > 0) {
    const text = 'ephemeral containers not allowed in pod template';
    errors.push(forbiddenField(`${field}.spec.ephemeralContainers`, text));
  }
  return [...errors, ...checkPodSpec(`${field}.spec`, spec)];
}

/** With hostNetwork, the host port must equal the container port. Host ports must be unique. */
function checkHostPorts(field: string, { containers, hostNetwork }: EnginePodSpec): FieldError[] {
  const errors: FieldError[] = [];
  const taken = new Set<string>();
  for (const [i, { ports = [] }] of containers.entries()) {
    for (const [j, { hostPort = 0, containerPort, hostIP = '', protocol = 'TCP' }] of ports.entries()) {
      const at = `${field}.containers[${i}].ports[${j}].hostPort`;
      if (hostPort === 0) continue;
      const place = `${protocol}/${hostIP}/${hostPort}`;
      if (taken.has(place)) errors.push(duplicateValue(at, place));
      taken.add(place);
      if (hostNetwork !== true || hostPort === containerPort) continue;
      errors.push(invalidValue(at, hostPort, 'must match `containerPort` when `hostNetwork` is true'));
    }
  }
  return errors;
}

/** Checks scheduling constraints. */
function checkPlacement(field: string, spec: EnginePodSpec): FieldError[] {
  const { nodeSelector, nodeName, tolerations = [], topologySpreadConstraints = [], affinity } = spec;
  return [
    ...checkLabelEntries(`${field}.nodeSelector`, nodeSelector),
    ...(nodeName ? checkName(`${field}.nodeName`, nodeName, 'subdomain') : []),
    ...tolerations.flatMap((toleration, i) => checkToleration(`${field}.tolerations[${i}]`, toleration)),
    ...(affinity === undefined ? [] : checkAffinity(`${field}.affinity`, affinity)),
    ...topologySpreadConstraints.flatMap(({ maxSkew, topologyKey, labelSelector }, i) => {
      const at = `${field}.topologySpreadConstraints[${i}]`;
      return [
        ...(maxSkew > 0 ? [] : [invalidValue(`${at}.maxSkew`, maxSkew, 'must be greater than zero')]),
        ...(topologyKey === '' ? [requiredValue(`${at}.topologyKey`, 'can not be empty')] : []),
        ...checkLabelSelector(`${at}.labelSelector`, labelSelector),
      ];
    }),
  ];
}

function checkToleration(field: string, toleration: Toleration): FieldError[] {
  const { key = '', operator = '', value = '', effect = '', tolerationSeconds } = toleration;
  const errors: FieldError[] = key === '' ? [] : checkLabelKey(`${field}.key`, key);
  if (key === '' && operator !== 'Exists') {
    const text = 'operator must be Exists when `key` is empty, which means "match all values and all keys"';
    errors.push(invalidValue(`${field}.operator`, operator, text));
  }
  if (tolerationSeconds !== undefined && effect !== 'NoExecute') {
    const text = "effect must be 'NoExecute' when `tolerationSeconds` is set";
    errors.push(invalidValue(`${field}.effect`, effect, text));
  }
  if (operator === 'Exists' && value !== '') {
    errors.push(invalidValue(`${field}.operator`, value, "value must be empty when `operator` is 'Exists'"));
  }
  if (operator === '' || operator === 'Equal') errors.push(...checkLabelValue(`${field}.operator`, value));
  return errors;
}

function checkIdentity(field: string, spec: EnginePodSpec): FieldError[] {
  const { hostname, subdomain, serviceAccountName, priorityClassName, activeDeadlineSeconds } = spec;
  const errors: FieldError[] = [];
  if (hostname) errors.push(...checkName(`${field}.hostname`, hostname, 'label'));
  if (subdomain) errors.push(...checkName(`${field}.subdomain`, subdomain, 'label'));
  if (serviceAccountName) errors.push(...checkName(`${field}.serviceAccountName`, serviceAccountName, 'subdomain'));
  if (priorityClassName) errors.push(...checkName(`${field}.priorityClassName`, priorityClassName, 'subdomain'));
  if (activeDeadlineSeconds !== undefined && (activeDeadlineSeconds < 1 || activeDeadlineSeconds > INT32_MAX)) {
    const text = `must be between 1 and ${INT32_MAX}, inclusive`;
    errors.push(invalidValue(`${field}.activeDeadlineSeconds`, activeDeadlineSeconds, text));
  }
  return errors;
}
