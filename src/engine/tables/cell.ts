/** Formats one cell of a Table by the type of its column. Values of the wrong type show as empty. */
import type { TableColumn } from '#engine/registry/resource.ts';
import { humanDuration } from '#kube/go/human-duration.ts';
import type { KubeObject } from '#kube/meta.ts';

export type Cell = string | number | boolean | null;

const RFC_3339 = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d+)?(Z|[+-]\d{2}:\d{2})$/;

export function cellOf(column: TableColumn, object: KubeObject, now: number): Cell {
  const value = column.value(object, now);
  if (value === undefined || value === null) return null;
  switch (column.type) {
    case 'string':
      return typeof value === 'string' ? value : String(value);
    case 'integer':
      return typeof value === 'number' ? Math.trunc(value) : null;
    case 'number':
      return typeof value === 'number' ? value : null;
    case 'boolean':
      return typeof value === 'boolean' ? value : null;
    case 'date':
      return typeof value === 'string' ? age(value, now) : null;
  }
}

/** Formats an age; an empty value is `<unknown>`, like a zero time in Kubernetes. */
function age(time: string, now: number): string {
  if (time === '' || time === 'null') return '<unknown>';
  const at = RFC_3339.test(time) ? Date.parse(time) : NaN;
  return Number.isNaN(at) ? '<invalid>' : humanDuration(now - at);
}
