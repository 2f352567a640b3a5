/** Cells that many kinds print alike. */
import type { KindColumn } from '#engine/registry/kinds/define-kind.ts';
import { humanDuration } from '#kube/human-duration.ts';
import { formatLabelSelector, labelRequirementsOf, type LabelSelector } from '#kube/label-selector.ts';
import type { KubeObject } from '#kube/meta.ts';

export const UNKNOWN = '<unknown>';
export const NONE = '<none>';
export const UNSET = '<unset>';

/** How long ago that was, as `kubectl get` shows ages. */
export function since(time: string | undefined, now: number): string {
  const at = time === undefined ? NaN : Date.parse(time);
  return Number.isNaN(at) ? UNKNOWN : humanDuration(now - at);
}

export const age: KindColumn<KubeObject> = {
  name: 'Age',
  description: 'Time since the object was created.',
  value: ({ metadata }, now) => since(metadata.creationTimestamp, now),
};

/** Kinds that nobody wrote a printer for show when they were made, not how long ago. */
export const createdAt: KindColumn<KubeObject> = {
  name: 'Created At',
  description: 'When the object was created.',
  value: ({ metadata }) => metadata.creationTimestamp ?? UNKNOWN,
};

/** `a=b,c=d` in order of the keys. */
export function labelsText(labels: Readonly<Record<string, string>> | undefined): string {
  const pairs = Object.entries(labels ?? {}).map(([key, value]) => `${key}=${value}`);
  return pairs.length === 0 ? NONE : pairs.sort().join(',');
}

/** A selector in the notation of `kubectl -l`. */
export function selectorText(selector: LabelSelector | undefined): string {
  const text = selector === undefined ? '' : formatLabelSelector(labelRequirementsOf(selector));
  return text === '' ? NONE : text;
}

const MODE_TEXT: readonly (readonly [string, string])[] = [
  ['ReadWriteOnce', 'RWO'],
  ['ReadOnlyMany', 'ROX'],
  ['ReadWriteMany', 'RWX'],
  ['ReadWriteOncePod', 'RWOP'],
];

/** `RWO,RWX`: always in this order, each once. */
export function accessModesText(modes: readonly string[] | undefined): string {
  return MODE_TEXT.filter(([mode]) => modes?.includes(mode))
    .map(([, text]) => text)
    .join(',');
}
