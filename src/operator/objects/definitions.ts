/** CustomResourceDefinitions of our kinds, and of third-party kinds that we need. */
import { crdOf } from '#api/custom-kind.ts';
import { customKinds } from '#api/kinds.ts';
import { desiredObject, type Desired } from '#operator/desired.ts';
import { DEFINITIONS } from '#operator/kinds.ts';
import { storageProfileDefinition } from '#operator/objects/storage-profile-definition.ts';
import { volumeSnapshotDefinitions } from '#operator/objects/volume-snapshot-definitions.ts';

const own: readonly Desired[] = customKinds.map((kind) => {
  const { metadata, spec } = crdOf(kind);
  return desiredObject(DEFINITIONS, { ...metadata, name: metadata.name ?? '' }, { spec });
});

export const definitions: readonly Desired[] = [...own, ...volumeSnapshotDefinitions, storageProfileDefinition];
