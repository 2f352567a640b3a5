/** Looks up the documentation of the Go types of built-in kinds by their OpenAPI model names. */
import { META, PACKAGES_OF_GROUPS } from '#engine/openapi/model-names.ts';
import { admissionDocs } from '#engine/openapi/type-docs/admission.ts';
import { coreDocs } from '#engine/openapi/type-docs/core.ts';
import { apiextensionsDocs, apiregistrationDocs } from '#engine/openapi/type-docs/extensions.ts';
import {
  appsDocs,
  authenticationDocs,
  authorizationDocs,
  batchDocs,
  coordinationDocs,
  discoveryDocs,
  metaDocs,
  policyDocs,
  rbacDocs,
  schedulingDocs,
  storageDocs,
} from '#engine/openapi/type-docs/groups.ts';
import type { PackageDocs, TypeDoc } from '#engine/openapi/type-docs/type-doc.ts';

const CORE = 'io.k8s.api.core.v1';

const packages: Readonly<Record<string, PackageDocs>> = {
  [CORE]: coreDocs,
  [META]: metaDocs,
  'io.k8s.api.admissionregistration.v1': admissionDocs,
  'io.k8s.api.apps.v1': appsDocs,
  'io.k8s.api.authentication.v1': authenticationDocs,
  'io.k8s.api.authorization.v1': authorizationDocs,
  'io.k8s.api.batch.v1': batchDocs,
  'io.k8s.api.coordination.v1': coordinationDocs,
  'io.k8s.api.discovery.v1': discoveryDocs,
  'io.k8s.api.policy.v1': policyDocs,
  'io.k8s.api.rbac.v1': rbacDocs,
  'io.k8s.api.scheduling.v1': schedulingDocs,
  'io.k8s.api.storage.v1': storageDocs,
  [`${PACKAGES_OF_GROUPS['apiextensions.k8s.io']}.v1`]: apiextensionsDocs,
  [`${PACKAGES_OF_GROUPS['apiregistration.k8s.io']}.v1`]: apiregistrationDocs,
};

const docs: ReadonlyMap<string, TypeDoc> = new Map(
  Object.entries(packages).flatMap(([name, types]) =>
    Object.entries(types).map(([type, doc]) => [`${name}.${type}`, doc] as const),
  ),
);

/** Returns the documentation of a model, or undefined if there is none. */
export const findTypeDoc = (model: string): TypeDoc | undefined => docs.get(model);

export const allTypeDocs = (): Iterable<readonly [model: string, doc: TypeDoc]> => docs;

/** Returns the model that a field's type refers to; `within` is the model that has the field. */
export function resolveModel(type: string, within: string): string {
  if (type.startsWith('core.')) return `${CORE}.${type.slice(5)}`;
  if (type.startsWith('meta.')) return `${META}.${type.slice(5)}`;
  return `${within.slice(0, within.lastIndexOf('.'))}.${type}`;
}
