/** Namespace. Its spec.finalizers can be removed only through the finalize subresource, when all content is deleted. */
import { defineKind } from '#engine/registry/kinds/define-kind.ts';
import { age } from '#engine/registry/kinds/shared/columns.ts';
import { plainCondition } from '#engine/registry/kinds/shared/condition.ts';
import { checkQualifiedName } from '#engine/registry/kinds/shared/formats.ts';
import { type FieldError, invalidValue } from '#kube/field-error.ts';
import { isRecord } from '#kube/meta.ts';
import { list, overrideOptions, obj, str } from '#kube/schema-dsl.ts';

const namespaceSpec = obj({
  finalizers: list(str(), { atomic: true }),
});

const namespaceStatus = obj({
  conditions: list(plainCondition, { mergeKey: 'type' }),
  phase: str(),
});

const namespace = obj({
  spec: overrideOptions(namespaceSpec, { default: {} }),
  status: namespaceStatus,
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
