/** Namespace. Its spec.finalizers can be removed only through the finalize subresource, when all content is deleted. */
import { apiType, optional } from '#engine/registry/kinds/api-type.ts';
import { defineKind } from '#engine/registry/kinds/define-kind.ts';
import { age } from '#engine/registry/kinds/shared/columns.ts';
import { conditionStatus, conditionTransition } from '#engine/registry/kinds/meta/condition.ts';
import { checkQualifiedName } from '#engine/registry/kinds/shared/formats.ts';
import { type FieldError, invalidValue } from '#kube/field-error.ts';
import { isRecord } from '#kube/meta.ts';
import { list, overrideOptions, str } from '#kube/schema-dsl.ts';

const namespaceSpec = apiType('core.v1.NamespaceSpec', 'Desired behavior of a namespace.', {
  finalizers: optional(
    1,
    list(str(), { atomic: true }),
    'Finalizers that must be empty before the namespace is removed.',
  ),
});

const namespaceCondition = apiType('core.v1.NamespaceCondition', 'A condition of a namespace.', {
  ...conditionStatus,
  ...conditionTransition(4),
});

const namespaceStatus = apiType('core.v1.NamespaceStatus', 'The current status of a namespace.', {
  phase: optional(1, str(), 'Phase of the namespace: Active or Terminating.'),
  conditions: optional(
    2,
    list(namespaceCondition, { mergeKey: 'type' }),
    'Latest observations of the state of the namespace.',
  ),
});

const namespace = apiType('core.v1.Namespace', 'A scope for the names of objects.', {
  spec: optional(2, overrideOptions(namespaceSpec, { default: {} }), 'Desired behavior of the namespace.'),
  status: optional(3, namespaceStatus, 'Current status of the namespace. Populated by the system. Read-only.'),
});

const FINALIZER = 'kubernetes';
const NAME_LABEL = 'kubernetes.io/metadata.name';

export const namespaces = defineKind({
  kind: 'Namespace',
  plural: 'namespaces',
  namespaced: false,
  shortNames: ['ns'],
  verbs: ['create', 'delete', 'get', 'list', 'patch', 'update', 'watch'],
  nameRule: 'label',
  schema: namespace,
  columns: [{ name: 'Status', value: ({ status }) => status?.phase ?? '' }, age],
  status: true,
  extraSubresources: [{ name: 'finalize', kind: 'Namespace', verbs: ['update'] }],
  selectableFields: {
    'status.phase': ({ status }) => status?.phase ?? '',
    name: ({ metadata }) => metadata.name ?? '',
  },
  defaults({ metadata }) {
    if (metadata.name) metadata.labels = { ...metadata.labels, [NAME_LABEL]: metadata.name };
  },
  prepareForCreate(object) {
    if (!isRecord(object.spec)) object.spec = {};
    const asked = Array.isArray(object.spec.finalizers) ? object.spec.finalizers : [];
    object.spec.finalizers = asked.includes(FINALIZER) ? asked : [...asked, FINALIZER];
    object.status = { phase: 'Active' };
  },
  prepareForUpdate(object, old) {
    const { finalizers: _asked, ...rest } = object.spec ?? {};
    object.spec = { ...rest, ...(old.spec?.finalizers && { finalizers: old.spec.finalizers }) };
  },
  beginDeletion(object) {
    object.status = { ...object.status, phase: 'Terminating' };
  },
  hasDeletionBlocker: ({ spec }) => (spec?.finalizers?.length ?? 0) > 0,
  validate: ({ spec }) => (spec?.finalizers ?? []).flatMap(checkFinalizer),
});

function checkFinalizer(name: string): FieldError[] {
  const errors = checkQualifiedName('spec.finalizers', name);
  if (name.includes('/') || name === FINALIZER || name === 'orphan') return errors;
  return [
    ...errors,
    invalidValue('spec.finalizers', name, 'name is neither a standard finalizer name nor is it fully qualified'),
  ];
}
