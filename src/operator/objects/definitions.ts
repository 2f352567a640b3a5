/** Our kinds as CustomResourceDefinitions. */
import { crdOf } from '#api/custom-kind.ts';
import { customKinds } from '#api/kinds.ts';
import { desired, type Desired } from '#operator/desired.ts';
import { DEFINITIONS } from '#operator/kinds.ts';

export const definitions: readonly Desired[] = customKinds.map((kind) => {
  const { metadata, spec } = crdOf(kind);
  return desired(DEFINITIONS, { ...metadata, name: metadata.name ?? '' }, { spec });
});
