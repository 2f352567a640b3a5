/** Columns that claims and volumes share. */
import type { KindColumn } from '#engine/registry/kinds/define-kind.ts';
import { UNSET_TEXT } from '#engine/registry/kinds/shared/columns.ts';
import type { KubeObject } from '#kube/meta.ts';
import { classNameOf } from '#kube/storage-class-name.ts';

type Storage = KubeObject & {
  spec?: { storageClassName?: string; volumeAttributesClassName?: string; volumeMode?: string };
  status?: { phase?: string };
};
type StorageColumn = KindColumn<Storage>;

export const phaseColumn: StorageColumn = {
  name: 'Status',
  value: ({ metadata, status }) => (metadata.deletionTimestamp === undefined ? (status?.phase ?? '') : 'Terminating'),
};

export const storageClassColumn: StorageColumn = {
  name: 'StorageClass',
  value: classNameOf,
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
