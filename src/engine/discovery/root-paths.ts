/** The index at `/`: all paths that are not resources. */
import { compareText } from '#lib/compare-text.ts';
import type { Resource } from '#engine/registry/resource.ts';

const FIXED: readonly string[] = [
  '/api',
  '/apis',
  '/apis/',
  '/healthz',
  '/livez',
  '/metrics',
  '/openapi/v2',
  '/openapi/v3',
  '/readyz',
  '/version',
];

export function rootPaths(served: readonly Pick<Resource, 'group' | 'version'>[]): { paths: string[] } {
  const paths = new Set(FIXED);
  for (const { group, version } of served) {
    if (group === '') {
      paths.add(`/api/${version}`);
    } else {
      paths.add(`/apis/${group}`);
      paths.add(`/apis/${group}/${version}`);
    }
  }
  return { paths: [...paths].sort(compareText) };
}
