/** ServiceAccount: the identity of what runs in pods. */
import { defineKind } from '#engine/registry/kinds/define-kind.ts';
import { age } from '#engine/registry/kinds/shared/columns.ts';
import { localObjectReference, objectReference } from '#engine/registry/kinds/shared/references.ts';
import { bool, list, obj } from '#kube/schema-dsl.ts';

const serviceAccount = obj({
  automountServiceAccountToken: bool(),
  imagePullSecrets: list(localObjectReference, { atomic: true }),
  secrets: list(objectReference, { mergeKey: 'name' }),
});

export const serviceAccounts = defineKind({
  kind: 'ServiceAccount',
  plural: 'serviceaccounts',
  namespaced: true,
  needsRevision: true,
  shortNames: ['sa'],
  schema: serviceAccount,
  columns: [{ name: 'Secrets', value: ({ secrets = [] }) => secrets.length }, age],
});
