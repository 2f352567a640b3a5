/** Lease: used for leader election and node heartbeats. */
import { apiType, optional, pointer } from '#engine/registry/kinds/api-type.ts';
import { defineKind } from '#engine/registry/kinds/define-kind.ts';
import { age } from '#engine/registry/kinds/shared/columns.ts';
import { checkNotNegative } from '#engine/registry/kinds/shared/formats.ts';
import { type FieldError, forbiddenField, invalidValue } from '#kube/field-error.ts';
import { int32, microTime, overrideOptions, str } from '#kube/schema-dsl.ts';

const leaseSpec = apiType('coordination.v1.LeaseSpec', 'The holder and duration of a lease.', {
  holderIdentity: pointer(1, str(), 'Identity of the current holder.'),
  leaseDurationSeconds: pointer(2, int32(), 'Seconds after the last renewal when others may acquire the lease.'),
  acquireTime: pointer(3, microTime(), 'Time when the current holder acquired the lease.', { message: 'MicroTime' }),
  renewTime: pointer(4, microTime(), 'Time when the current holder last renewed the lease.', { message: 'MicroTime' }),
  leaseTransitions: pointer(5, int32(), 'Number of transitions between holders.'),
  strategy: pointer(6, str(), 'Strategy that picks the holder in a coordinated leader election.'),
  preferredHolder: pointer(7, str(), 'Identity of the holder that should acquire the lease.'),
});

const lease = apiType(
  'coordination.v1.Lease',
  'A lease that one holder at a time owns, for example the leader of a controller.',
  {
    spec: optional(2, overrideOptions(leaseSpec, { default: {} }), 'Holder and duration of the lease.'),
  },
);

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
