/** ServiceAccount: the identity of processes in pods. */
import { apiType, optional, pointer } from '#engine/registry/kinds/api-type.ts';
import { defineKind } from '#engine/registry/kinds/define-kind.ts';
import { age } from '#engine/registry/kinds/shared/columns.ts';
import { records } from '#engine/registry/kinds/shared/reading.ts';
import { localObjectReference, objectReference } from '#engine/registry/kinds/core/references.ts';
import { bool, list } from '#kube/schema-dsl.ts';

const ENFORCE_MOUNTABLE = 'kubernetes.io/enforce-mountable-secrets';

const serviceAccount = apiType('core.v1.ServiceAccount', 'An identity for the processes of pods.', {
  secrets: optional(
    2,
    list(objectReference, { mergeKey: 'name' }),
    'Secrets that pods which use the account may reference.',
  ),
  imagePullSecrets: optional(
    3,
    list(localObjectReference, { atomic: true }),
    'Secrets for pulling images, added to pods that use the account.',
  ),
  automountServiceAccountToken: pointer(
    4,
    bool(),
    'Whether pods that use the account get its token mounted. Pods can override it.',
  ),
});

export const serviceAccounts = defineKind({
  kind: 'ServiceAccount',
  plural: 'serviceaccounts',
  namespaced: true,
  needsRevision: true,
  shortNames: ['sa'],
  schema: serviceAccount,
  columns: [{ name: 'Secrets', value: ({ secrets = [] }) => secrets.length }, age],
  extraSubresources: [
    { name: 'token', kind: 'TokenRequest', group: 'authentication.k8s.io', version: 'v1', verbs: ['create'] },
  ],
  defaults(object) {
    // Secrets are in the account's namespace, so only their names are kept.
    if (Array.isArray(object.secrets)) object.secrets = records(object.secrets).map(({ name }) => ({ name }));
  },
  warnings: ({ metadata }) =>
    metadata.annotations?.[ENFORCE_MOUNTABLE] === undefined
      ? []
      : [
          `metadata.annotations[${ENFORCE_MOUNTABLE}]: deprecated in v1.32+; prefer separate namespaces to isolate access to mounted secrets`,
        ],
});
