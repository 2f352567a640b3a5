/** Lease: used for leader election and node heartbeats. */
import { defineKind } from '#engine/registry/kinds/define-kind.ts';
import { age } from '#engine/registry/kinds/shared/columns.ts';
import { checkNotNegative } from '#engine/registry/kinds/shared/formats.ts';
import { type FieldError, forbiddenField, invalidValue } from '#kube/field-error.ts';
import { int32, microTime, overrideOptions, obj, str } from '#kube/schema-dsl.ts';

const leaseSpec = obj({
  acquireTime: microTime(),
  holderIdentity: str(),
  leaseDurationSeconds: int32(),
  leaseTransitions: int32(),
  preferredHolder: str(),
  renewTime: microTime(),
  strategy: str(),
});

const lease = obj({ spec: overrideOptions(leaseSpec, { default: {} }) });

export const leases = defineKind({
  group: 'coordination.k8s.io',
  kind: 'Lease',
  plural: 'leases',
  namespaced: true,
  needsRevision: true,
  schema: lease,
  columns: [{ name: 'Holder', value: ({ spec }) => spec?.holderIdentity ?? '' }, age],
  validate: ({ spec = {} }) => {
    const { leaseDurationSeconds, leaseTransitions, strategy, preferredHolder } = spec;
    const errors: FieldError[] = [];
    if (leaseDurationSeconds !== undefined && leaseDurationSeconds <= 0) {
      errors.push(invalidValue('spec.leaseDurationSeconds', leaseDurationSeconds, 'must be greater than 0'));
    }
    errors.push(...checkNotNegative('spec.leaseTransitions', leaseTransitions));
    if (preferredHolder && !strategy) {
      errors.push(forbiddenField('spec.preferredHolder', 'may only be specified if `strategy` is defined'));
    }
    return errors;
  },
});
