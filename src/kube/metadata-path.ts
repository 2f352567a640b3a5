/** Reads fields of an object's metadata by their downward API paths. Pure. */
import type { ObjectMeta } from '#kube/meta.ts';

export const METADATA_PATHS = [
  'metadata.annotations',
  'metadata.labels',
  'metadata.name',
  'metadata.namespace',
  'metadata.uid',
  "metadata.annotations['<KEY>']",
  "metadata.labels['<KEY>']",
];

const KEYED = /^metadata\.(annotations|labels)\['([^']{1,317})'\]$/;

export function isMetadataPath(path: string): boolean {
  return METADATA_PATHS.slice(0, 5).includes(path) || KEYED.test(path);
}

/** Returns '' if there is no such key, as in a pod. Maps become lines of `key="value"`. */
export function readMetadataPath(metadata: ObjectMeta, path: string): string {
  const [, field, key = ''] = KEYED.exec(path) ?? [];
  if (field === 'annotations' || field === 'labels') {
    const map = metadata[field] ?? {};
    return Object.hasOwn(map, key) ? (map[key] ?? '') : '';
  }
  switch (path) {
    case 'metadata.name':
      return metadata.name ?? '';
    case 'metadata.namespace':
      return metadata.namespace ?? '';
    case 'metadata.uid':
      return metadata.uid ?? '';
    case 'metadata.labels':
      return linesOf(metadata.labels);
    case 'metadata.annotations':
      return linesOf(metadata.annotations);
    default:
      return '';
  }
}

function linesOf(map: Readonly<Record<string, string>> = {}): string {
  const lines = Object.entries(map).map(([key, value]) => `${key}=${JSON.stringify(value)}`);
  return lines.toSorted().join('\n');
}
