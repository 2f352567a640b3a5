/** The Go types that built-in kinds are made of, by the names that OpenAPI gives them. */
import { META, PACKAGES_OF_GROUPS } from '#engine/openapi/model-names.ts';
import { admissionParts } from '#engine/openapi/parts/admission.ts';
import { coreParts } from '#engine/openapi/parts/core.ts';
import { apiextensionsParts, apiregistrationParts } from '#engine/openapi/parts/extensions.ts';
import {
  appsParts,
  authenticationParts,
  authorizationParts,
  batchParts,
  coordinationParts,
  discoveryParts,
  metaParts,
  policyParts,
  rbacParts,
  schedulingParts,
  storageParts,
} from '#engine/openapi/parts/groups.ts';
import type { Part, Parts } from '#engine/openapi/parts/part.ts';

const CORE = 'io.k8s.api.core.v1';

const packages: Readonly<Record<string, Parts>> = {
  [CORE]: coreParts,
  [META]: metaParts,
  'io.k8s.api.admissionregistration.v1': admissionParts,
  'io.k8s.api.apps.v1': appsParts,
  'io.k8s.api.authentication.v1': authenticationParts,
  'io.k8s.api.authorization.v1': authorizationParts,
  'io.k8s.api.batch.v1': batchParts,
  'io.k8s.api.coordination.v1': coordinationParts,
  'io.k8s.api.discovery.v1': discoveryParts,
  'io.k8s.api.policy.v1': policyParts,
  'io.k8s.api.rbac.v1': rbacParts,
  'io.k8s.api.scheduling.v1': schedulingParts,
  'io.k8s.api.storage.v1': storageParts,
  [`${PACKAGES_OF_GROUPS['apiextensions.k8s.io']}.v1`]: apiextensionsParts,
  [`${PACKAGES_OF_GROUPS['apiregistration.k8s.io']}.v1`]: apiregistrationParts,
};

const parts: ReadonlyMap<string, Part> = new Map(
  Object.entries(packages).flatMap(([name, types]) =>
    Object.entries(types).map(([type, part]) => [`${name}.${type}`, part] as const),
  ),
);

/** Undefined = a type that nobody has words for. */
export const partOf = (model: string): Part | undefined => parts.get(model);

export const allParts = (): Iterable<readonly [model: string, part: Part]> => parts;

/** The model of a field's type, as the part of another model names it. */
export function modelOfType(type: string, within: string): string {
  if (type.startsWith('core.')) return `${CORE}.${type.slice(5)}`;
  if (type.startsWith('meta.')) return `${META}.${type.slice(5)}`;
  return `${within.slice(0, within.lastIndexOf('.'))}.${type}`;
}
