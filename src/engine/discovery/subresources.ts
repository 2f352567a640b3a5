/** The verbs and subresources of a kind in discovery. */
import { compareText } from '#lib/text/compare-text.ts';
import type { ExtraSubresource, Resource } from '#engine/registry/resource.ts';

const OBJECT_VERBS: readonly string[] = ['get', 'patch', 'update'];

/** kube-apiserver lists the verbs of custom resources in this order, those of built-in kinds alphabetically. */
const CUSTOM_ORDER: readonly string[] = [
  'delete',
  'deletecollection',
  'get',
  'list',
  'patch',
  'create',
  'update',
  'watch',
];

export function orderedVerbs({ verbs, builtIn }: Resource): string[] {
  if (builtIn) return [...verbs].sort(compareText);
  return CUSTOM_ORDER.filter((verb) => (verbs as readonly string[]).includes(verb));
}

/**
 * Returns all subresources, sorted by name for built-in kinds; status before scale for custom kinds. Group and version are
 * set only if they differ from those of the resource.
 */
export function subresourcesOf(resource: Resource): ExtraSubresource[] {
  const found: ExtraSubresource[] = [];
  if (resource.status) found.push({ name: 'status', kind: resource.kind, verbs: OBJECT_VERBS });
  if (resource.scale !== undefined) {
    found.push({ name: 'scale', group: 'autoscaling', version: 'v1', kind: 'Scale', verbs: OBJECT_VERBS });
  }
  for (const { name, kind, group, version, verbs } of resource.extraSubresources ?? []) {
    const foreign = group !== undefined && group !== '';
    found.push({ name, kind, ...(foreign ? { group, version } : {}), verbs: [...verbs].sort(compareText) });
  }
  return resource.builtIn ? found.sort((a, b) => compareText(a.name, b.name)) : found;
}
