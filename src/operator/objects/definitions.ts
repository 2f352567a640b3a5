/** CustomResourceDefinitions of our kinds, and of third-party kinds that we need. */
import { buildCrd } from '#api/custom-kind.ts';
import { customKinds } from '#api/kinds.ts';
import { desiredObject, type DesiredObject } from '#operator/desired.ts';
import { DEFINITIONS } from '#operator/kinds.ts';
import { storageProfileDefinition } from '#operator/objects/storage-profile-definition.ts';
import { volumeSnapshotDefinitions } from '#operator/objects/volume-snapshot-definitions.ts';

const own: readonly DesiredObject[] = customKinds.map((kind) => {
  const { metadata, spec } = buildCrd(kind);
  return desiredObject(DEFINITIONS, { ...metadata, name: metadata.name ?? '' }, { spec });
});

export const definitions: readonly DesiredObject[] = [...own, ...volumeSnapshotDefinitions, storageProfileDefinition];
