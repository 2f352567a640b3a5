/** ServiceAccount: the identity of processes in pods. */
import { defineKind } from '#engine/registry/kinds/define-kind.ts';
import { age } from '#engine/registry/kinds/shared/columns.ts';
import { records } from '#engine/registry/kinds/shared/reading.ts';
import { localObjectReference, objectReference } from '#engine/registry/kinds/shared/references.ts';
import { bool, list, obj } from '#kube/schema-dsl.ts';

const ENFORCE_MOUNTABLE = 'kubernetes.io/enforce-mountable-secrets';

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
