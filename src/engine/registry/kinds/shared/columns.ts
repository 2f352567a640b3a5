/** Columns and cells that several kinds share. */
import type { KindColumn } from '#engine/registry/kinds/define-kind.ts';
import { humanDuration } from '#kube/go/human-duration.ts';
import { formatLabelSelector, labelRequirementsOf, type LabelSelector } from '#kube/selectors/label-selector.ts';
import type { KubeObject } from '#kube/meta.ts';

export const UNKNOWN_TEXT = '<unknown>';
export const NONE_TEXT = '<none>';
export const UNSET_TEXT = '<unset>';

/** Formats the time since `time`, like the ages of `kubectl get`. */
export function formatAge(time: string | undefined, now: number): string {
  const at = time === undefined ? NaN : Date.parse(time);
  return Number.isNaN(at) ? UNKNOWN_TEXT : humanDuration(now - at);
}

export const age: KindColumn<KubeObject> = {
  name: 'Age',
  description: 'Time since the object was created.',
  value: ({ metadata }, now) => formatAge(metadata.creationTimestamp, now),
};

/** Kinds without a printer of their own show the creation time instead of the age. */
export const createdAt: KindColumn<KubeObject> = {
  name: 'Created At',
  description: 'Time when the object was created.',
  value: ({ metadata }) => metadata.creationTimestamp ?? UNKNOWN_TEXT,
};

/** Formats labels as `a=b,c=d`, sorted by key. */
export function labelsText(labels: Readonly<Record<string, string>> | undefined): string {
  const pairs = Object.entries(labels ?? {}).map(([key, value]) => `${key}=${value}`);
  return pairs.length === 0 ? NONE_TEXT : pairs.sort().join(',');
}

/** Formats a selector in the syntax of `kubectl -l`. */
export function selectorText(selector: LabelSelector | undefined): string {
  const text = selector === undefined ? '' : formatLabelSelector(labelRequirementsOf(selector));
  return text === '' ? NONE_TEXT : text;
}

const MODE_TEXT: readonly (readonly [string, string])[] = [
  ['ReadWriteOnce', 'RWO'],
  ['ReadOnlyMany', 'ROX'],
  ['ReadWriteMany', 'RWX'],
  ['ReadWriteOncePod', 'RWOP'],
];

/** Formats modes as `RWO,RWX`, in a fixed order and without duplicates. */
export function accessModesText(modes: readonly string[] | undefined): string {
  return MODE_TEXT.filter(([mode]) => modes?.includes(mode))
    .map(([, text]) => text)
    .join(',');
}
