/** Describes plans in a few words, for test tables. */
import type { ObjectMeta } from '#kube/meta.ts';
import type { Change, Plan } from '#runtime/plan.ts';

/** Describes a patch as `patch thing owners=[a!]`: the remaining references, with `!` if they block. */
export function describePlan({ changes, requeueAfterMs }: Plan): string[] {
  return [...changes.map(describeChange), ...(requeueAfterMs === 0 ? ['again'] : [])];
}

function describeChange(change: Change): string {
  if (change.do === 'create') return 'create';
  if (change.do === 'delete') return `delete ${change.name.name} ${change.propagationPolicy}`;
  const { metadata } = change.patch.body as { metadata: ObjectMeta };
  const fields: string[] = [];
  if ('ownerReferences' in metadata) {
    const kept = (metadata.ownerReferences ?? []).map(({ name, blockOwnerDeletion }) =>
      blockOwnerDeletion ? `${name}!` : name,
    );
    fields.push(`owners=[${kept.join(' ')}]`);
  }
  if ('finalizers' in metadata) fields.push(`finalizers=[${(metadata.finalizers ?? []).join(' ')}]`);
  return `patch ${change.name.name} ${fields.join(' ')}`;
}
