/** PersistentVolume. Its source is immutable. */
import { apiType, inlined, optional, pointer } from '#engine/registry/kinds/api-type.ts';
import { defineKind } from '#engine/registry/kinds/define-kind.ts';
import { persistentVolumeSources } from '#engine/registry/kinds/volumes/persistent-volume-source.ts';
import { accessModes, checkAccessModes, volumeMode } from '#engine/registry/kinds/volumes/claim-spec.ts';
import { accessModesText, age } from '#engine/registry/kinds/shared/columns.ts';
import { checkImmutableValue, checkName, checkOneSource } from '#engine/registry/kinds/shared/formats.ts';
import { checkNodeSelectorTerms, volumeNodeAffinity } from '#engine/registry/kinds/pod-spec/node-affinity.ts';
import { canonicalAmounts, checkPositiveAmount, quantityText } from '#engine/registry/kinds/shared/quantities.ts';
import { sameValue } from '#engine/registry/kinds/shared/reading.ts';
import { objectReference } from '#engine/registry/kinds/core/references.ts';
import {
  attributesClassColumn,
  phaseColumn,
  storageClassColumn,
  volumeModeColumn,
} from '#engine/registry/kinds/volumes/storage-columns.ts';
import { checkCsiDriver, checkHostPath, checkNfs } from '#engine/registry/kinds/volumes/volume-rules.ts';
import { type FieldError, forbiddenField, invalidValue, requiredValue, unsupportedValue } from '#kube/field-error.ts';
import { isRecord } from '#kube/meta.ts';
import { type Infer, list, map, overrideOptions, obj, oneOf, quantity, str, time } from '#kube/schema-dsl.ts';

const SOURCES = Object.keys(persistentVolumeSources).sort();

const persistentVolumeSpec = apiType('core.v1.PersistentVolumeSpec', 'Characteristics of a persistent volume.', {
  capacity: optional(1, map(quantity()), 'Resources and capacity of the volume.'),
  ...inlined(2, 'core.v1.PersistentVolumeSource', persistentVolumeSources),
  accessModes: optional(3, accessModes, 'Ways in which the volume can be mounted.'),
  // Not atomic like other references: the binder and the user who reserves the volume each own some fields.
  claimRef: pointer(4, obj(objectReference.properties), 'The PersistentVolumeClaim that the volume is bound to.'),
  persistentVolumeReclaimPolicy: optional(
    5,
    oneOf(['Delete', 'Recycle', 'Retain'], { default: 'Retain' }),
    'What happens to the volume when its claim is deleted: Retain, Delete or Recycle.',
  ),
  storageClassName: optional(6, str(), 'Name of the StorageClass that the volume belongs to.'),
  mountOptions: optional(7, list(str(), { atomic: true }), 'Mount options.'),
  volumeMode: pointer(8, volumeMode, 'Volume mode: Filesystem or Block.'),
  nodeAffinity: pointer(9, volumeNodeAffinity, 'Nodes that can access the volume.'),
  volumeAttributesClassName: pointer(10, str(), 'Name of the VolumeAttributesClass that the volume belongs to.'),
});

const persistentVolumeStatus = apiType('core.v1.PersistentVolumeStatus', 'The current status of a persistent volume.', {
  phase: optional(1, str(), 'Phase of the volume: Pending, Available, Bound, Released or Failed.'),
  message: optional(2, str(), 'Human-readable message about the state of the volume.'),
  reason: optional(3, str(), 'Brief CamelCase reason for a failure.'),
  lastPhaseTransitionTime: pointer(4, time(), 'Last time the phase changed.'),
});

const persistentVolume = apiType(
  'core.v1.PersistentVolume',
  'A piece of storage in the cluster, whose lifetime is independent of any pod that uses it.',
  {
    spec: optional(2, overrideOptions(persistentVolumeSpec, { default: {} }), 'Characteristics of the volume.'),
    status: optional(3, persistentVolumeStatus, 'Current status of the volume. Populated by the system. Read-only.'),
  },
);

type VolumeSpec = Infer<typeof persistentVolumeSpec>;

const AFFINITY_FIXED = 'field is immutable, except for updating from beta label to GA';

export const persistentVolumes = defineKind({
  kind: 'PersistentVolume',
  plural: 'persistentvolumes',
  namespaced: false,
  shortNames: ['pv'],
  schema: persistentVolume,
  columns: [
    { name: 'Capacity', value: ({ spec }) => quantityText(spec?.capacity?.['storage'] ?? '0') },
    { name: 'Access Modes', value: ({ spec }) => accessModesText(spec?.accessModes) },
    { name: 'Reclaim Policy', value: ({ spec }) => spec?.persistentVolumeReclaimPolicy ?? '' },
    phaseColumn,
    {
      name: 'Claim',
      value: ({ spec }) =>
        spec?.claimRef === undefined ? '' : `${spec.claimRef.namespace ?? ''}/${spec.claimRef.name ?? ''}`,
    },
    storageClassColumn,
    attributesClassColumn,
    { name: 'Reason', value: ({ status }) => status?.reason ?? '' },
    age,
    volumeModeColumn,
  ],
  status: true,
  defaults({ spec }) {
    if (isRecord(spec)) canonicalAmounts(spec.capacity);
  },
  prepareForCreate(object) {
    object.status = { phase: 'Pending' };
  },
  validate: ({ spec }) => checkVolumeSpec(spec ?? {}),
  validateUpdate: ({ spec = {} }, { spec: old = {} }) => {
    const errors: FieldError[] = [];
    if (SOURCES.some((source) => !sameValue(sourceOf(spec, source), sourceOf(old, source)))) {
      const text = 'spec.persistentvolumesource is immutable after creation';
      errors.push(forbiddenField('spec.persistentvolumesource', text));
    }
    errors.push(...checkImmutableValue('volumeMode', spec.volumeMode, old.volumeMode));
    if (old.nodeAffinity !== undefined && !sameValue(spec.nodeAffinity, old.nodeAffinity)) {
      errors.push(invalidValue('nodeAffinity', spec.nodeAffinity, AFFINITY_FIXED));
    }
    return errors;
  },
});

function sourceOf(spec: VolumeSpec, source: string): unknown {
  return (spec as Record<string, unknown>)[source];
}

function checkVolumeSpec(spec: VolumeSpec): FieldError[] {
  const { capacity = {}, nodeAffinity, storageClassName } = spec;
  const errors = checkAccessModes('spec.accessModes', spec.accessModes);
  const names = Object.keys(capacity);
  if (names.length === 0) errors.push(requiredValue('spec.capacity'));
  if (names.length !== 1 || names[0] !== 'storage') {
    errors.push(unsupportedValue('spec.capacity', capacity, ['storage']));
  }
  for (const name of names) errors.push(...checkPositiveAmount(`spec.capacity[${name}]`, capacity[name] ?? '0'));
  errors.push(...checkOneSource('spec', spec, SOURCES, 'volume'));
  const required = nodeAffinity?.required;
  if (nodeAffinity !== undefined) {
    errors.push(
      ...(required === undefined
        ? [requiredValue('spec.nodeAffinity.required', 'must specify required node constraints')]
        : checkNodeSelectorTerms('spec.nodeAffinity.required', required.nodeSelectorTerms)),
    );
  } else if (spec.local !== undefined) {
    errors.push(requiredValue('spec.nodeAffinity', 'Local volume requires node affinity'));
  }
  if (spec.hostPath !== undefined) errors.push(...checkHostPath('spec.hostPath', spec.hostPath));
  if (spec.local !== undefined) errors.push(...checkHostPath('spec.local', spec.local));
  if (spec.nfs !== undefined) errors.push(...checkNfs('spec.nfs', spec.nfs));
  if (spec.csi !== undefined) {
    errors.push(...checkCsiDriver('spec.csi.driver', spec.csi.driver));
    if (spec.csi.volumeHandle === '') errors.push(requiredValue('spec.csi.volumeHandle'));
  }
  if (storageClassName) errors.push(...checkName('spec.storageClassName', storageClassName, 'subdomain'));
  return errors;
}
