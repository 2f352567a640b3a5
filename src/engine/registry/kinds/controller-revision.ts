/** ControllerRevision: a state of an object that its controller can restore. */
import { apiType, optional, required } from '#engine/registry/kinds/api-type.ts';
import { defineKind } from '#engine/registry/kinds/define-kind.ts';
import { age, NONE_TEXT } from '#engine/registry/kinds/shared/columns.ts';
import { checkImmutableValue, checkNotNegative } from '#engine/registry/kinds/shared/formats.ts';
import { requiredValue } from '#kube/field-error.ts';
import { groupKind, type ObjectMeta, parseApiVersion } from '#kube/meta.ts';
import { anything, int64 } from '#kube/schema-dsl.ts';

const controllerRevision = apiType(
  'apps.v1.ControllerRevision',
  'An immutable snapshot of state data, which controllers use for updates and rollbacks.',
  {
    data: optional(2, anything(), 'Serialized state.', { message: 'RawExtension' }),
    revision: required(3, int64({ default: 0 }), 'Revision number of the state.'),
  },
);

export const controllerRevisions = defineKind({
  group: 'apps',
  kind: 'ControllerRevision',
  plural: 'controllerrevisions',
  namespaced: true,
  schema: controllerRevision,
  columns: [
    { name: 'Controller', value: ({ metadata }) => controllerOf(metadata) },
    { name: 'Revision', value: ({ revision }) => revision },
    age,
  ],
  validate: ({ data, revision }) => [
    ...(data === undefined || data === null ? [requiredValue('data', 'data is mandatory')] : []),
    ...checkNotNegative('revision', revision),
  ],
  validateUpdate: ({ data }, old) => checkImmutableValue('data', data, old.data),
});

/** Formats the controller of a revision: `statefulset.apps/web`. */
function controllerOf({ ownerReferences }: ObjectMeta): string {
  const owner = ownerReferences?.find(({ controller }) => controller === true);
  if (owner === undefined) return NONE_TEXT;
  const { group } = parseApiVersion(owner.apiVersion);
  return `${groupKind({ group, kind: owner.kind }).toLowerCase()}/${owner.name}`;
}
