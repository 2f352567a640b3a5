/** PersistentVolume: a piece of storage. What it stands for never changes. */
import { defineKind } from '#engine/registry/kinds/define-kind.ts';
import {
  azureFilePersistentVolumeSource,
  cephFSPersistentVolumeSource,
  cinderPersistentVolumeSource,
  csiPersistentVolumeSource,
  flexPersistentVolumeSource,
  glusterfsPersistentVolumeSource,
  iscsiPersistentVolumeSource,
  localVolumeSource,
  rbdPersistentVolumeSource,
  scaleIOPersistentVolumeSource,
  storageOSPersistentVolumeSource,
} from '#engine/registry/kinds/persistent-volume-source.ts';
import { checkAccessModes } from '#engine/registry/kinds/shared/access-modes.ts';
import { accessModesText, age, UNSET } from '#engine/registry/kinds/shared/columns.ts';
import { checkImmutable, checkName, checkOneSource } from '#engine/registry/kinds/shared/formats.ts';
import {
  awsElasticBlockStoreVolumeSource,
  azureDiskVolumeSource,
  fcVolumeSource,
  flockerVolumeSource,
  gcePersistentDiskVolumeSource,
  hostPathVolumeSource,
  nfsVolumeSource,
  photonPersistentDiskVolumeSource,
  portworxVolumeSource,
  quobyteVolumeSource,
  vsphereVirtualDiskVolumeSource,
} from '#engine/registry/kinds/shared/network-volume.ts';
import { checkNodeSelectorTerms } from '#engine/registry/kinds/shared/node-affinity-rules.ts';
import { volumeNodeAffinity } from '#engine/registry/kinds/shared/node-affinity.ts';
import { canonicalAmounts, checkPositiveAmount, quantityText } from '#engine/registry/kinds/shared/quantities.ts';
import { sameValue } from '#engine/registry/kinds/shared/reading.ts';
import { objectReference } from '#engine/registry/kinds/shared/references.ts';
import { type FieldError, forbiddenField, requiredValue, unsupportedValue } from '#kube/field-error.ts';
import { isRecord } from '#kube/meta.ts';
import { type Infer, list, map, noted, obj, oneOf, quantity, str, time } from '#kube/schema-dsl.ts';

const persistentVolumeSpec = obj({
  accessModes: list(oneOf(['ReadOnlyMany', 'ReadWriteMany', 'ReadWriteOnce', 'ReadWriteOncePod']), { atomic: true }),
  awsElasticBlockStore: awsElasticBlockStoreVolumeSource,
  azureDisk: azureDiskVolumeSource,
  azureFile: azureFilePersistentVolumeSource,
  capacity: map(quantity()),
  cephfs: cephFSPersistentVolumeSource,
  cinder: cinderPersistentVolumeSource,
  claimRef: objectReference,
  csi: csiPersistentVolumeSource,
  fc: fcVolumeSource,
  flexVolume: flexPersistentVolumeSource,
  flocker: flockerVolumeSource,
  gcePersistentDisk: gcePersistentDiskVolumeSource,
  glusterfs: glusterfsPersistentVolumeSource,
  hostPath: hostPathVolumeSource,
  iscsi: iscsiPersistentVolumeSource,
  local: localVolumeSource,
  mountOptions: list(str(), { atomic: true }),
  nfs: nfsVolumeSource,
  nodeAffinity: volumeNodeAffinity,
  persistentVolumeReclaimPolicy: oneOf(['Delete', 'Recycle', 'Retain'], { default: 'Retain' }),
  photonPersistentDisk: photonPersistentDiskVolumeSource,
  portworxVolume: portworxVolumeSource,
  quobyte: quobyteVolumeSource,
  rbd: rbdPersistentVolumeSource,
  scaleIO: scaleIOPersistentVolumeSource,
  storageClassName: str(),
  storageos: storageOSPersistentVolumeSource,
  volumeAttributesClassName: str(),
  volumeMode: oneOf(['Block', 'Filesystem'], { default: 'Filesystem' }),
  vsphereVolume: vsphereVirtualDiskVolumeSource,
});

const persistentVolumeStatus = obj({
  lastPhaseTransitionTime: time(),
  message: str(),
  phase: str(),
  reason: str(),
});

const persistentVolume = obj({
  spec: noted(persistentVolumeSpec, { default: {} }),
  status: persistentVolumeStatus,
});

type VolumeSpec = Infer<typeof persistentVolumeSpec>;

const NOT_A_SOURCE = new Set([
  'accessModes',
  'capacity',
  'claimRef',
  'mountOptions',
  'nodeAffinity',
  'persistentVolumeReclaimPolicy',
  'storageClassName',
  'volumeAttributesClassName',
  'volumeMode',
]);
const SOURCES = Object.keys(persistentVolumeSpec.properties).filter((name) => !NOT_A_SOURCE.has(name));
/** Older than the field, and still read. */
const CLASS_ANNOTATION = 'volume.beta.kubernetes.io/storage-class';

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
    {
      name: 'Status',
      value: ({ metadata, status }) =>
        metadata.deletionTimestamp === undefined ? (status?.phase ?? '') : 'Terminating',
    },
    {
      name: 'Claim',
      value: ({ spec }) =>
        spec?.claimRef === undefined ? '' : `${spec.claimRef.namespace ?? ''}/${spec.claimRef.name ?? ''}`,
    },
    {
      name: 'StorageClass',
      value: ({ metadata, spec }) => metadata.annotations?.[CLASS_ANNOTATION] ?? spec?.storageClassName ?? '',
    },
    { name: 'VolumeAttributesClass', value: ({ spec }) => spec?.volumeAttributesClassName ?? UNSET },
    { name: 'Reason', value: ({ status }) => status?.reason ?? '' },
    age,
    { name: 'VolumeMode', priority: 1, value: ({ spec }) => spec?.volumeMode ?? UNSET },
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
    errors.push(...checkImmutable('volumeMode', spec.volumeMode, old.volumeMode));
    if (old.nodeAffinity !== undefined) {
      errors.push(...checkImmutable('nodeAffinity', spec.nodeAffinity, old.nodeAffinity));
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
  if (storageClassName) errors.push(...checkName('spec.storageClassName', storageClassName, 'subdomain'));
  return errors;
}
