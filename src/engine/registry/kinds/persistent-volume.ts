/** PersistentVolume. Its source is immutable. */
import { defineKind } from '#engine/registry/kinds/define-kind.ts';
import { persistentVolumeSources } from '#engine/registry/kinds/persistent-volume-source.ts';
import { accessModes, checkAccessModes, volumeMode } from '#engine/registry/kinds/shared/access-modes.ts';
import { accessModesText, age } from '#engine/registry/kinds/shared/columns.ts';
import { checkImmutableValue, checkName, checkOneSource } from '#engine/registry/kinds/shared/formats.ts';
import { checkNodeSelectorTerms } from '#engine/registry/kinds/shared/node-affinity-rules.ts';
import { volumeNodeAffinity } from '#engine/registry/kinds/shared/node-affinity.ts';
import { plainVolumeSources } from '#engine/registry/kinds/shared/plain-volume-source.ts';
import { canonicalAmounts, checkPositiveAmount, quantityText } from '#engine/registry/kinds/shared/quantities.ts';
import { sameValue } from '#engine/registry/kinds/shared/reading.ts';
import { objectReference } from '#engine/registry/kinds/shared/references.ts';
import {
  attributesClassColumn,
  phaseColumn,
  storageClassColumn,
  volumeModeColumn,
} from '#engine/registry/kinds/shared/storage-columns.ts';
import { checkCsiDriver, checkHostPath, checkNfs } from '#engine/registry/kinds/shared/volume-rules.ts';
import { type FieldError, forbiddenField, invalidValue, requiredValue, unsupportedValue } from '#kube/field-error.ts';
import { isRecord } from '#kube/meta.ts';
import { type Infer, list, map, overrideOptions, obj, oneOf, quantity, str, time } from '#kube/schema-dsl.ts';

const sources = { ...plainVolumeSources, ...persistentVolumeSources };
const SOURCES = Object.keys(sources).sort();

const persistentVolumeSpec = obj({
  ...sources,
  accessModes,
  capacity: map(quantity()),
  // Not atomic like other references: the binder and the user who reserves the volume each own some fields.
  claimRef: obj(objectReference.properties),
  mountOptions: list(str(), { atomic: true }),
  nodeAffinity: volumeNodeAffinity,
  persistentVolumeReclaimPolicy: oneOf(['Delete', 'Recycle', 'Retain'], { default: 'Retain' }),
  storageClassName: str(),
  volumeAttributesClassName: str(),
  volumeMode,
});

const persistentVolumeStatus = obj({
  lastPhaseTransitionTime: time(),
  message: str(),
  phase: str(),
  reason: str(),
});

const persistentVolume = obj({
  spec: overrideOptions(persistentVolumeSpec, { default: {} }),
  status: persistentVolumeStatus,
});

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
