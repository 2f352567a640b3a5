/** Rules for a pod's spec, in pods and in templates alike. */
import { checkContainer } from '#engine/registry/kinds/shared/container-rules.ts';
import {
  checkLabelKey,
  checkLabels,
  checkLabelValue,
  checkName,
  checkOneSource,
  checkRequiredName,
  checkUnique,
} from '#engine/registry/kinds/shared/formats.ts';
import { checkLabelSelector } from '#engine/registry/kinds/shared/label-selector.ts';
import type { PodSpec, PodTemplateSpec } from '#engine/registry/kinds/shared/pod-spec.ts';
import { checkNodeSelectorTerms } from '#engine/registry/kinds/shared/node-affinity-rules.ts';
import { volume } from '#engine/registry/kinds/shared/volume.ts';
import { type FieldError, invalidValue, requiredValue } from '#kube/field-error.ts';
import { annotationKeyErrors } from '#kube/names.ts';

type Toleration = NonNullable<PodSpec['tolerations']>[number];

const VOLUME_SOURCES = Object.keys(volume.properties).filter((name) => name !== 'name');
const INT32_MAX = 2_147_483_647;

export function checkPodSpec(field: string, spec: PodSpec): FieldError[] {
  const { containers, initContainers = [], ephemeralContainers = [], volumes = [] } = spec;
  const volumeNames = new Set(volumes.map(({ name }) => name));
  const errors: FieldError[] = [];
  if (containers.length === 0) errors.push(requiredValue(`${field}.containers`));
  const names: [string, string][] = [];
  // Regular containers first: a name that two sorts share is an error of the other sort.
  const sorts = { containers, initContainers, ephemeralContainers };
  for (const [sort, list] of Object.entries(sorts)) {
    for (const [i, container] of list.entries()) {
      errors.push(...checkContainer(`${field}.${sort}[${i}]`, container, volumeNames));
      names.push([`${field}.${sort}[${i}].name`, container.name]);
    }
  }
  return [
    ...errors,
    ...checkUnique(names),
    ...checkVolumes(`${field}.volumes`, volumes),
    ...checkPlacement(field, spec),
    ...checkIdentity(field, spec),
  ];
}

export function checkPodTemplate(field: string, { metadata, spec }: PodTemplateSpec): FieldError[] {
  const errors = checkLabels(`${field}.labels`, metadata?.labels);
  for (const key of Object.keys(metadata?.annotations ?? {})) {
    errors.push(...annotationKeyErrors(key).map((text) => invalidValue(`${field}.annotations`, key, text)));
  }
  return spec === undefined ? errors : [...errors, ...checkPodSpec(`${field}.spec`, spec)];
}

function checkVolumes(field: string, volumes: NonNullable<PodSpec['volumes']>): FieldError[] {
  return [
    ...volumes.flatMap((one, i) => [
      ...checkOneSource(`${field}[${i}]`, one, VOLUME_SOURCES, 'volume'),
      ...checkRequiredName(`${field}[${i}].name`, one.name, 'label'),
      ...(one.persistentVolumeClaim?.claimName === ''
        ? [requiredValue(`${field}[${i}].persistentVolumeClaim.claimName`)]
        : []),
    ]),
    ...checkUnique(volumes.map(({ name }, i) => [`${field}[${i}].name`, name] as const)),
  ];
}

/** Where it may run. */
function checkPlacement(field: string, spec: PodSpec): FieldError[] {
  const { nodeSelector, nodeName, tolerations = [], topologySpreadConstraints = [], affinity } = spec;
  const required = affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution;
  const requiredAt = `${field}.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution`;
  return [
    ...checkLabels(`${field}.nodeSelector`, nodeSelector),
    ...(nodeName ? checkName(`${field}.nodeName`, nodeName, 'subdomain') : []),
    ...tolerations.flatMap((toleration, i) => checkToleration(`${field}.tolerations[${i}]`, toleration)),
    ...(required === undefined ? [] : checkNodeSelectorTerms(requiredAt, required.nodeSelectorTerms)),
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

function checkIdentity(field: string, spec: PodSpec): FieldError[] {
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
