/**
 * Definitions of the volume snapshot kinds, for clusters that do not have them. Fields, columns and names are those of
 * the Kubernetes CSI project, for compatibility with tools and drivers.
 */
import type { PrinterColumn } from '#api/custom-kinds/custom-kind.ts';
import { bool, int64, intOrString, map, obj, oneOf, str, time } from '#kube/schema-dsl.ts';
import type { Schema } from '#kube/schema.ts';
import { VOLUME_SNAPSHOT_CLASSES, VOLUME_SNAPSHOT_CONTENTS, VOLUME_SNAPSHOTS } from '#kube/volume-snapshot-kinds.ts';
import type { DesiredObject } from '#operator/desired.ts';
import { foreignDefinition, type ForeignKind } from '#operator/objects/foreign-definition.ts';

/** API servers refuse kinds in groups of k8s.io without a reference to their approval. */
const APPROVED = {
  'api-approved.kubernetes.io': 'https://github.com/kubernetes-csi/external-snapshotter/pull/814',
};

const AGE: PrinterColumn = { name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp' };
const QUANTITY =
  '^(\\+|-)?(([0-9]+(\\.[0-9]*)?)|(\\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\\+|-)?(([0-9]+(\\.[0-9]*)?)|(\\.[0-9]+))))?$';

const deletionPolicy = oneOf(['Delete', 'Retain']);
const error = obj({ time: time(), message: str() });

/** Returns a schema that requires exactly one of the two fields. */
const eitherOf = (a: string, b: string): Schema => ({
  ...obj({ [a]: str(), [b]: str() }),
  oneOf: [{ required: [a] }, { required: [b] }],
});

const volumeSnapshot: ForeignKind = {
  type: VOLUME_SNAPSHOTS,
  shortNames: ['vs'],
  description: 'A request for a snapshot of a volume, or a binding to an existing snapshot.',
  properties: {
    spec: obj(
      {
        source: eitherOf('persistentVolumeClaimName', 'volumeSnapshotContentName'),
        volumeSnapshotClassName: str({
          description: 'The VolumeSnapshotClass. Defaults to the default class of the driver.',
        }),
      },
      { required: ['source'] },
    ),
    status: obj({
      boundVolumeSnapshotContentName: str(),
      creationTime: time({ description: 'The point in time of the snapshot.' }),
      error,
      readyToUse: bool(),
      restoreSize: {
        ...intOrString({ description: 'The minimum size of a volume that is created from the snapshot.' }),
        pattern: QUANTITY,
      },
      volumeGroupSnapshotName: str(),
    }),
  },
  required: ['spec'],
  columns: [
    { name: 'ReadyToUse', type: 'boolean', jsonPath: '.status.readyToUse' },
    { name: 'SourcePVC', type: 'string', jsonPath: '.spec.source.persistentVolumeClaimName' },
    { name: 'SourceSnapshotContent', type: 'string', jsonPath: '.spec.source.volumeSnapshotContentName' },
    { name: 'RestoreSize', type: 'string', jsonPath: '.status.restoreSize' },
    { name: 'SnapshotClass', type: 'string', jsonPath: '.spec.volumeSnapshotClassName' },
    { name: 'SnapshotContent', type: 'string', jsonPath: '.status.boundVolumeSnapshotContentName' },
    { name: 'CreationTime', type: 'date', jsonPath: '.status.creationTime' },
    AGE,
  ],
};

const volumeSnapshotContent: ForeignKind = {
  type: VOLUME_SNAPSHOT_CONTENTS,
  shortNames: ['vsc', 'vscs'],
  description: 'A snapshot of a volume in the storage system.',
  properties: {
    spec: obj(
      {
        deletionPolicy,
        driver: str(),
        source: eitherOf('snapshotHandle', 'volumeHandle'),
        sourceVolumeMode: str(),
        volumeSnapshotClassName: str(),
        volumeSnapshotRef: obj(
          {
            apiVersion: str(),
            fieldPath: str(),
            kind: str(),
            name: str(),
            namespace: str(),
            resourceVersion: str(),
            uid: str(),
          },
          { atomic: true },
        ),
      },
      { required: ['deletionPolicy', 'driver', 'source', 'volumeSnapshotRef'] },
    ),
    status: obj({
      creationTime: int64({ description: 'In nanoseconds since 1970.' }),
      error,
      readyToUse: bool(),
      restoreSize: int64({ minimum: 0, description: 'In bytes.' }),
      snapshotHandle: str(),
      volumeGroupSnapshotHandle: str(),
    }),
  },
  required: ['spec'],
  columns: [
    { name: 'ReadyToUse', type: 'boolean', jsonPath: '.status.readyToUse' },
    { name: 'RestoreSize', type: 'integer', jsonPath: '.status.restoreSize' },
    { name: 'DeletionPolicy', type: 'string', jsonPath: '.spec.deletionPolicy' },
    { name: 'Driver', type: 'string', jsonPath: '.spec.driver' },
    { name: 'VolumeSnapshotClass', type: 'string', jsonPath: '.spec.volumeSnapshotClassName' },
    { name: 'VolumeSnapshot', type: 'string', jsonPath: '.spec.volumeSnapshotRef.name' },
    { name: 'VolumeSnapshotNamespace', type: 'string', jsonPath: '.spec.volumeSnapshotRef.namespace' },
    AGE,
  ],
};

const volumeSnapshotClass: ForeignKind = {
  type: VOLUME_SNAPSHOT_CLASSES,
  shortNames: ['vsclass', 'vsclasses'],
  description: 'The driver and the parameters for snapshots of volumes.',
  properties: { deletionPolicy, driver: str(), parameters: map(str()) },
  required: ['deletionPolicy', 'driver'],
  columns: [
    { name: 'Driver', type: 'string', jsonPath: '.driver' },
    { name: 'DeletionPolicy', type: 'string', jsonPath: '.deletionPolicy' },
    AGE,
  ],
};

export const volumeSnapshotDefinitions: readonly DesiredObject[] = [
  volumeSnapshot,
  volumeSnapshotContent,
  volumeSnapshotClass,
].map((kind) => foreignDefinition(kind, { annotations: APPROVED }));
