/** PersistentVolumeClaim: the wish for a volume. Only a bound one may grow. */
import { defineKind } from '#engine/registry/kinds/define-kind.ts';
import { checkAccessModes } from '#engine/registry/kinds/shared/access-modes.ts';
import { persistentVolumeClaimSpec } from '#engine/registry/kinds/shared/claim-spec.ts';
import { accessModesText, age, UNSET } from '#engine/registry/kinds/shared/columns.ts';
import { checkImmutable, checkName } from '#engine/registry/kinds/shared/formats.ts';
import { checkLabelSelector } from '#engine/registry/kinds/shared/label-selector.ts';
import {
  canonicalAmounts,
  canonicalResources,
  checkPositiveAmount,
  compareQuantities,
  quantityText,
} from '#engine/registry/kinds/shared/quantities.ts';
import { sameValue } from '#engine/registry/kinds/shared/reading.ts';
import { type FieldError, forbiddenField, requiredValue } from '#kube/field-error.ts';
import { isRecord, type KubeObject } from '#kube/meta.ts';
import { type Infer, list, map, noted, obj, quantity, str, time } from '#kube/schema-dsl.ts';

const persistentVolumeClaimCondition = obj(
  {
    lastProbeTime: time(),
    lastTransitionTime: time(),
    message: str(),
    reason: str(),
    status: str(),
    type: str(),
  },
  { required: ['type', 'status'] },
);

const modifyVolumeStatus = obj(
  {
    status: str(),
    targetVolumeAttributesClassName: str(),
  },
  { required: ['status'] },
);

const persistentVolumeClaimStatus = obj({
  accessModes: list(str(), { atomic: true }),
  allocatedResourceStatuses: map(str()),
  allocatedResources: map(quantity()),
  capacity: map(quantity()),
  conditions: list(persistentVolumeClaimCondition, { mergeKey: 'type' }),
  currentVolumeAttributesClassName: str(),
  modifyVolumeStatus,
  phase: str(),
});

const claim = obj({
  spec: noted(persistentVolumeClaimSpec, { default: {} }),
  status: persistentVolumeClaimStatus,
});

type Claim = KubeObject & Infer<typeof claim>;
type ClaimSpec = Infer<typeof persistentVolumeClaimSpec>;

/** Older than the field, and still read. */
const CLASS_ANNOTATION = 'volume.beta.kubernetes.io/storage-class';

export const persistentVolumeClaims = defineKind({
  kind: 'PersistentVolumeClaim',
  plural: 'persistentvolumeclaims',
  namespaced: true,
  shortNames: ['pvc'],
  schema: claim,
  columns: [
    {
      name: 'Status',
      value: ({ metadata, status }) =>
        metadata.deletionTimestamp === undefined ? (status?.phase ?? '') : 'Terminating',
    },
    { name: 'Volume', value: ({ spec }) => spec?.volumeName ?? '' },
    {
      name: 'Capacity',
      value: ({ spec, status }) => (spec?.volumeName ? quantityText(status?.capacity?.['storage'] ?? '0') : ''),
    },
    {
      name: 'Access Modes',
      value: ({ spec, status }) => (spec?.volumeName ? accessModesText(status?.accessModes) : ''),
    },
    {
      name: 'StorageClass',
      value: ({ metadata, spec }) => metadata.annotations?.[CLASS_ANNOTATION] ?? spec?.storageClassName ?? '',
    },
    { name: 'VolumeAttributesClass', value: ({ spec }) => spec?.volumeAttributesClassName ?? UNSET },
    age,
    { name: 'VolumeMode', priority: 1, value: ({ spec }) => spec?.volumeMode ?? UNSET },
  ],
  status: true,
  defaults({ spec, status }) {
    if (isRecord(spec)) {
      canonicalResources(spec.resources);
      referToSource(spec);
    }
    if (isRecord(status)) canonicalAmounts(status.capacity);
  },
  prepareForCreate(object) {
    object.status = { phase: 'Pending' };
  },
  validate: ({ spec }) => checkClaimSpec('spec', spec ?? {}),
  validateUpdate: checkClaimUpdate,
});

/** The older of the two source fields and its successor say the same, as far as the older one can. */
function referToSource(spec: ClaimSpec): void {
  const { dataSource, dataSourceRef } = spec;
  if (isRecord(dataSource) && dataSourceRef === undefined) spec.dataSourceRef = { ...dataSource };
  if (isRecord(dataSourceRef) && dataSource === undefined && !dataSourceRef.namespace) {
    spec.dataSource = { ...dataSourceRef };
  }
}

function checkClaimSpec(field: string, spec: ClaimSpec): FieldError[] {
  const errors = checkAccessModes(`${field}.accessModes`, spec.accessModes, 'at least 1 access mode is required');
  const size = spec.resources?.requests?.['storage'];
  errors.push(
    ...checkLabelSelector(`${field}.selector`, spec.selector),
    ...(size === undefined
      ? [requiredValue(`${field}.resources[storage]`)]
      : checkPositiveAmount(`${field}.resources[storage]`, size)),
  );
  if (spec.storageClassName) errors.push(...checkName(`${field}.storageClassName`, spec.storageClassName, 'subdomain'));
  return errors;
}

function checkClaimUpdate(object: Claim, old: Claim): FieldError[] {
  const { spec = {}, status } = object;
  const { spec: oldSpec = {}, status: oldStatus } = old;
  const bound = status?.phase === 'Bound';
  const errors: FieldError[] = [];
  if (!sameValue(fixedPart(spec, oldSpec, bound), fixedPart(oldSpec, oldSpec, bound))) {
    const text =
      'spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims';
    errors.push(forbiddenField('spec', text));
  }
  const size = spec.resources?.requests?.['storage'] ?? '0';
  const oldSize = oldSpec.resources?.requests?.['storage'] ?? '0';
  const capacity = oldStatus?.capacity?.['storage'] ?? '0';
  // A failed growth may be taken back, down to just above what is there.
  if (compareQuantities(size, oldSize) < 0 && compareQuantities(size, capacity) <= 0) {
    errors.push(forbiddenField('spec.resources.requests.storage', 'field can not be less than status.capacity'));
  }
  errors.push(...checkImmutable('volumeMode', spec.volumeMode, oldSpec.volumeMode));
  return errors;
}

/** What may not change: the volume's name is set once, a missing class may be filled in. */
function fixedPart(spec: ClaimSpec, old: ClaimSpec, bound: boolean): unknown {
  const requests = spec.resources?.requests;
  return {
    ...spec,
    ...(old.volumeName ? {} : { volumeName: undefined }),
    ...(old.storageClassName === undefined ? { storageClassName: undefined } : {}),
    ...(bound
      ? {
          volumeAttributesClassName: undefined,
          resources: { ...spec.resources, requests: { ...requests, storage: '' } },
        }
      : {}),
  };
}
