/** Columns that claims and volumes share. */
import type { KindColumn } from '#engine/registry/kinds/define-kind.ts';
import { UNSET_TEXT } from '#engine/registry/kinds/shared/columns.ts';
import type { KubeObject } from '#kube/meta.ts';

type Storage = KubeObject & {
  spec?: { storageClassName?: string; volumeAttributesClassName?: string; volumeMode?: string };
  status?: { phase?: string };
};
type StorageColumn = KindColumn<Storage>;

/** The predecessor of the field, which is still read. */
const CLASS_ANNOTATION = 'volume.beta.kubernetes.io/storage-class';

export const phaseColumn: StorageColumn = {
  name: 'Status',
  value: ({ metadata, status }) => (metadata.deletionTimestamp === undefined ? (status?.phase ?? '') : 'Terminating'),
};

export const storageClassColumn: StorageColumn = {
  name: 'StorageClass',
  value: ({ metadata, spec }) => metadata.annotations?.[CLASS_ANNOTATION] ?? spec?.storageClassName ?? '',
};

export const attributesClassColumn: StorageColumn = {
  name: 'VolumeAttributesClass',
  value: ({ spec }) => spec?.volumeAttributesClassName ?? UNSET_TEXT,
};

export const volumeModeColumn: StorageColumn = {
  name: 'VolumeMode',
  priority: 1,
  value: ({ spec }) => spec?.volumeMode ?? UNSET_TEXT,
};
