/** DeleteOptions: the body of a delete, and a part of an Eviction. */
import { apiType, jsonOnly, optional, pointer } from '#engine/registry/kinds/api-type.ts';
import { bool, int64, list, str } from '#kube/schema-dsl.ts';

const preconditions = apiType('meta.v1.Preconditions', 'Conditions that must hold for a deletion.', {
  uid: pointer(1, str(), 'Required UID of the object.'),
  resourceVersion: pointer(2, str(), 'Required resource version of the object.'),
});

export const deleteOptionsSchema = apiType('meta.v1.DeleteOptions', 'Options of a deletion.', {
  apiVersion: jsonOnly(str(), 'API version of the options.'),
  kind: jsonOnly(str(), 'Kind of the options.'),
  gracePeriodSeconds: pointer(1, int64(), 'Seconds before the object is deleted. 0 deletes it immediately.'),
  preconditions: pointer(2, preconditions, 'Conditions that must hold for the deletion.'),
  orphanDependents: pointer(3, bool(), 'Deprecated: use propagationPolicy.'),
  propagationPolicy: pointer(4, str(), 'How dependents are deleted: Orphan, Background or Foreground.'),
  dryRun: optional(5, list(str(), { atomic: true }), 'All means that nothing is deleted.'),
  ignoreStoreReadErrorWithClusterBreakingPotential: pointer(
    6,
    bool(),
    'Whether an object that cannot be read from the store is deleted without its finalizers.',
  ),
});
