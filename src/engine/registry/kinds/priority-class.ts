/** PriorityClass. */
import { apiType, optional, pointer, required } from '#engine/registry/kinds/api-type.ts';
import { defineKind } from '#engine/registry/kinds/define-kind.ts';
import { age } from '#engine/registry/kinds/shared/columns.ts';
import { checkImmutableValue } from '#engine/registry/kinds/shared/formats.ts';
import { type FieldError, forbiddenField } from '#kube/field-error.ts';
import { bool, int32, oneOf, str } from '#kube/schema-dsl.ts';

const priorityClass = apiType('scheduling.v1.PriorityClass', 'Maps a name to a priority of pods.', {
  value: required(2, int32({ default: 0 }), 'Priority of the pods. Higher values are more important.'),
  globalDefault: optional(3, bool(), 'Whether pods without a class get this one.'),
  description: optional(4, str(), 'When to use the class.'),
  preemptionPolicy: pointer(
    5,
    oneOf(['Never', 'PreemptLowerPriority'], { default: 'PreemptLowerPriority' }),
    'Whether pods may preempt pods of lower priority: PreemptLowerPriority or Never.',
  ),
});

const USER_MAX = 1_000_000_000;
const SYSTEM_PREFIX = 'system-';
const SYSTEM_VALUES: Readonly<Record<string, number>> = {
  'system-cluster-critical': 2_000_000_000,
  'system-node-critical': 2_000_001_000,
};

export const priorityClasses = defineKind({
  group: 'scheduling.k8s.io',
  kind: 'PriorityClass',
  plural: 'priorityclasses',
  namespaced: false,
  shortNames: ['pc'],
  schema: priorityClass,
  columns: [
    { name: 'Value', type: 'integer', value: ({ value }) => value },
    { name: 'Global-Default', type: 'boolean', value: ({ globalDefault }) => globalDefault ?? false },
    age,
    { name: 'PreemptionPolicy', value: ({ preemptionPolicy }) => preemptionPolicy ?? '' },
  ],
  generation: true,
  validate: ({ metadata, value, globalDefault }) => checkValue(metadata.name ?? '', value, globalDefault === true),
  validateUpdate: (object, old) => [
    ...(object.value === old.value ? [] : [forbiddenField('value', 'may not be changed in an update.')]),
    ...checkImmutableValue('preemptionPolicy', object.preemptionPolicy, old.preemptionPolicy),
  ],
});

function checkValue(name: string, value: number, globalDefault: boolean): FieldError[] {
  if (!name.startsWith(SYSTEM_PREFIX)) {
    if (value <= USER_MAX) return [];
    return [forbiddenField('value', `maximum allowed value of a user defined priority is ${USER_MAX}`)];
  }
  const why = findSystemClassError(name, value, globalDefault);
  if (why === undefined) return [];
  const text = `priority class names with '${SYSTEM_PREFIX}' prefix are reserved for system use only. error: ${why}`;
  return [forbiddenField('metadata.name', text)];
}

function findSystemClassError(name: string, value: number, globalDefault: boolean): string | undefined {
  const wanted = SYSTEM_VALUES[name];
  if (wanted === undefined) return `${name} is not a known system priority class`;
  if (value !== wanted) return `value of ${name} PriorityClass must be ${wanted}`;
  return globalDefault ? `globalDefault of ${name} PriorityClass must be false` : undefined;
}
