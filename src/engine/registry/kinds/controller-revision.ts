/** ControllerRevision: a state of an object that its controller can restore. */
import { defineKind } from '#engine/registry/kinds/define-kind.ts';
import { age, NONE_TEXT } from '#engine/registry/kinds/shared/columns.ts';
import { checkImmutableValue, checkNotNegative } from '#engine/registry/kinds/shared/formats.ts';
import { requiredValue } from '#kube/field-error.ts';
import { groupKind, type ObjectMeta, parseApiVersion } from '#kube/meta.ts';
import { anything, int64, obj } from '#kube/schema-dsl.ts';

const controllerRevision = obj(
  {
    data: anything(),
    revision: int64({ default: 0 }),
  },
  { required: ['revision'] },
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
