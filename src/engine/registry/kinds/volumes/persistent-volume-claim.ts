/** PersistentVolumeClaim: a request for a volume. Only a bound claim may be expanded. */
import { apiType, optional, pointer, required } from '#engine/registry/kinds/api-type.ts';
import { defineKind } from '#engine/registry/kinds/define-kind.ts';
import {
  checkClaimSpec,
  type ClaimSpec,
  persistentVolumeClaimSpec,
} from '#engine/registry/kinds/volumes/claim-spec.ts';
import { accessModesText, age } from '#engine/registry/kinds/shared/columns.ts';
import { probedCondition } from '#engine/registry/kinds/meta/condition.ts';
import { checkImmutableValue } from '#engine/registry/kinds/shared/formats.ts';
import {
  canonicalAmounts,
  canonicalResources,
  compareAmounts,
  quantityText,
} from '#engine/registry/kinds/shared/quantities.ts';
import { sameValue } from '#engine/registry/kinds/shared/reading.ts';
import {
  attributesClassColumn,
  phaseColumn,
  storageClassColumn,
  volumeModeColumn,
} from '#engine/registry/kinds/volumes/storage-columns.ts';
import { type FieldError, forbiddenField, invalidValue } from '#kube/field-error.ts';
import { isRecord, type KubeObject } from '#kube/meta.ts';
import { STORAGE_CLASS_ANNOTATION, storageAnnotationOf } from '#kube/storage-class-name.ts';
import { type Infer, list, map, overrideOptions, quantity, str } from '#kube/schema-dsl.ts';

const modifyVolumeStatus = apiType(
  'core.v1.ModifyVolumeStatus',
  'The status of a change of the VolumeAttributesClass.',
  {
    targetVolumeAttributesClassName: optional(1, str(), 'Name of the desired VolumeAttributesClass.'),
    status: required(2, str(), 'Status of the change: Pending, InProgress or Infeasible.'),
  },
);

const claimCondition = probedCondition(
  'core.v1.PersistentVolumeClaimCondition',
  'A condition of a persistent volume claim.',
  'Type of the condition, such as Resizing.',
);

const persistentVolumeClaimStatus = apiType(
  'core.v1.PersistentVolumeClaimStatus',
  'The current status of a persistent volume claim.',
  {
    phase: optional(1, str(), 'Phase of the claim: Pending, Bound or Lost.'),
    accessModes: optional(2, list(str(), { atomic: true }), 'Access modes of the bound volume.'),
    capacity: optional(3, map(quantity()), 'Actual resources of the bound volume.'),
    conditions: optional(4, list(claimCondition, { mergeKey: 'type' }), 'Current conditions of the claim.'),
    allocatedResources: optional(
      5,
      map(quantity()),
      'Resources allocated to the claim, including those of a resize in progress.',
    ),
    allocatedResourceStatuses: optional(7, map(str()), 'Status of a resize, by resource.'),
    currentVolumeAttributesClassName: pointer(8, str(), 'Name of the VolumeAttributesClass in use.'),
    modifyVolumeStatus: pointer(9, modifyVolumeStatus, 'Status of a change of the VolumeAttributesClass.'),
  },
);

const claim = apiType('core.v1.PersistentVolumeClaim', "A user's request for and claim to a persistent volume.", {
  spec: optional(
    2,
    overrideOptions(persistentVolumeClaimSpec, { default: {} }),
    'Desired characteristics of the volume.',
  ),
  status: optional(3, persistentVolumeClaimStatus, 'Current status of the claim. Populated by the system. Read-only.'),
});

type Claim = KubeObject & Infer<typeof claim>;

export const persistentVolumeClaims = defineKind({
  kind: 'PersistentVolumeClaim',
  plural: 'persistentvolumeclaims',
  namespaced: true,
  shortNames: ['pvc'],
  schema: claim,
  columns: [
    phaseColumn,
    { name: 'Volume', value: ({ spec }) => spec?.volumeName ?? '' },
    {
      name: 'Capacity',
      value: ({ spec, status }) => (spec?.volumeName ? quantityText(status?.capacity?.['storage'] ?? '0') : ''),
    },
    {
      name: 'Access Modes',
      value: ({ spec, status }) => (spec?.volumeName ? accessModesText(status?.accessModes) : ''),
    },
    storageClassColumn,
    attributesClassColumn,
    age,
    volumeModeColumn,
  ],
  status: true,
  defaults({ spec, status }) {
    if (isRecord(spec)) canonicalResources(spec.resources);
    if (isRecord(status)) canonicalAmounts(status.capacity);
  },
  prepareForCreate(object) {
    object.status = { phase: 'Pending' };
    if (!isRecord(object.spec)) return;
    dropUnknownSource(object.spec);
    referToSource(object.spec);
  },
  prepareForUpdate({ spec }) {
    if (isRecord(spec)) referToSource(spec);
  },
  validate: ({ spec }) => checkClaimSpec('spec', spec ?? {}),
  validateUpdate: checkClaimUpdate,
});

const CLONE = '/PersistentVolumeClaim';
const SNAPSHOT = 'snapshot.storage.k8s.io/VolumeSnapshot';

/** The older dataSource supports only these two kinds and ignores others; dataSourceRef accepts any kind. */
function dropUnknownSource(spec: ClaimSpec): void {
  const { dataSource, dataSourceRef } = spec;
  if (!isRecord(dataSource) || dataSourceRef !== undefined) return;
  const kind = `${dataSource.apiGroup ?? ''}/${dataSource.kind}`;
  if (kind !== CLONE && kind !== SNAPSHOT) delete spec.dataSource;
}

/** Keeps dataSource and dataSourceRef equal, as far as dataSource can express it. */
function referToSource(spec: ClaimSpec): void {
  const { dataSource, dataSourceRef } = spec;
  if (isRecord(dataSource) && dataSourceRef === undefined) spec.dataSourceRef = { ...dataSource };
  if (isRecord(dataSourceRef) && dataSource === undefined && !dataSourceRef.namespace) {
    spec.dataSource = { ...dataSourceRef };
  }
}

function checkClaimUpdate(object: Claim, old: Claim): FieldError[] {
  const { spec = {}, status } = object;
  const { spec: oldSpec = {}, status: oldStatus } = old;
  const bound = status?.phase === 'Bound';
  const errors: FieldError[] = [];
  if (!sameValue(fixedPart(spec, old, bound), fixedPart(oldSpec, old, bound))) {
    const text =
      'spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims';
    errors.push(forbiddenField('spec', text));
  }
  const size = spec.resources?.requests?.['storage'] ?? '0';
  const oldSize = oldSpec.resources?.requests?.['storage'] ?? '0';
  const capacity = oldStatus?.capacity?.['storage'] ?? '0';
  // A failed expansion may be reverted, down to just above the current capacity.
  if (compareAmounts(size, oldSize) < 0 && compareAmounts(size, capacity) <= 0) {
    errors.push(forbiddenField('spec.resources.requests.storage', 'field can not be less than status.capacity'));
  }
  errors.push(...checkImmutableValue('volumeMode', spec.volumeMode, oldSpec.volumeMode));
  if (!movesClassToField(object, old)) errors.push(...checkClassAnnotation(object, old));
  return errors;
}

const classAnnotationOf = (claim: Claim) => storageAnnotationOf(claim, STORAGE_CLASS_ANNOTATION);

/** The annotation is part of what quotas count, and cannot change. */
function checkClassAnnotation(object: Claim, old: Claim): FieldError[] {
  const [next, before] = [classAnnotationOf(object) ?? '', classAnnotationOf(old) ?? ''];
  if (next === before) return [];
  return [invalidValue(`metadata.annotations.${STORAGE_CLASS_ANNOTATION}`, next, 'field is immutable')];
}

/** Reports whether the class moves from the annotation to the field. */
function movesClassToField(object: Claim, old: Claim): boolean {
  const before = classAnnotationOf(old);
  if (before === undefined || old.spec?.storageClassName !== undefined) return false;
  return object.spec?.storageClassName === before && (classAnnotationOf(object) ?? before) === before;
}

/**
 * Returns the immutable fields: volumeName can be set once, and a missing class can be filled in, with that of the
 * annotation if there is one.
 */
function fixedPart(spec: ClaimSpec, claim: Claim, bound: boolean): unknown {
  const requests = spec.resources?.requests;
  const { spec: old = {} } = claim;
  const annotated = classAnnotationOf(claim);
  const mayFill = old.storageClassName === undefined && (annotated ?? spec.storageClassName) === spec.storageClassName;
  return {
    ...spec,
    ...(old.volumeName ? {} : { volumeName: undefined }),
    ...(mayFill ? { storageClassName: undefined } : {}),
    ...(bound
      ? {
          volumeAttributesClassName: undefined,
          resources: { ...spec.resources, requests: { ...requests, storage: '' } },
        }
      : {}),
  };
}
