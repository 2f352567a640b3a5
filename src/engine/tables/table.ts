/**
 * Builds Tables for `kubectl get`. Errors stay Status objects, as in kube-apiserver. In a watch, the first event has
 * the column definitions and later ones have null.
 */
import type { TableColumn, Resource } from '#engine/registry/resource.ts';
import type { MetaVersion } from '#engine/tables/negotiate-representation.ts';
import { partialMetadata, type PartialObjectMetadata } from '#engine/tables/partial-metadata.ts';
import { badRequest } from '#kube/api-error.ts';
import type { KubeObject, ListMeta } from '#kube/meta.ts';
import { humanDuration } from '#kube/go/human-duration.ts';

type IncludeObject = 'None' | 'Metadata' | 'Object';

interface ColumnDefinition {
  name: string;
  type: string;
  format: string;
  description: string;
  priority: number;
}

interface TableRow {
  cells: Cell[];
  object: PartialObjectMetadata | KubeObject | null;
}

interface Table {
  kind: 'Table';
  apiVersion: string;
  metadata: ListMeta;
  columnDefinitions: readonly ColumnDefinition[] | null;
  rows: TableRow[];
}

export interface TableOptions {
  readonly now: number;
  readonly includeObject: IncludeObject;
  /** Metadata of the list; for a single object only its resourceVersion. */
  readonly listMeta: ListMeta;
  readonly withColumns?: boolean;
  readonly version?: MetaVersion;
}

const NAME_DESCRIPTION =
  'Name must be unique within a namespace. Is required when creating resources, although some resources may allow a client to request the generation of an appropriate name automatically. Name is primarily intended for creation idempotence and configuration definition. Cannot be updated. More info: https://kubernetes.io/docs/concepts/overview/working-with-objects/names#names';

const NAME: TableColumn = {
  name: 'Name',
  type: 'string',
  format: 'name',
  description: NAME_DESCRIPTION,
  value: (object) => object.metadata.name ?? '',
};

export function tableOf(resource: Resource, objects: readonly KubeObject[], options: TableOptions): Table {
  const { now, includeObject, listMeta, withColumns = true, version = 'v1' } = options;
  const { columns, definitions } = layoutOf(resource);
  return {
    kind: 'Table',
    apiVersion: `meta.k8s.io/${version}`,
    metadata: listMeta,
    columnDefinitions: withColumns ? definitions : null,
    rows: objects.map((object) => ({
      cells: columns.map((column) => cellAt(column, object, now)),
      object: objectOfRow(object, includeObject, version),
    })),
  };
}

/** A bookmark is an object without name or content, which columns of built-in kinds could not read. */
function cellAt(column: TableColumn, object: KubeObject, now: number): Cell {
  if (object.metadata.name === undefined) return column.name === NAME.name ? '' : null;
  return cellOf(column, object, now);
}

/** Parses the `includeObject` query parameter; absent means metadata. */
export function parseIncludeObject(value: string | null): IncludeObject {
  if (value === null || value === '') return 'Metadata';
  if (value === 'None' || value === 'Metadata' || value === 'Object') return value;
  throw badRequest(
    `Unable to convert to Table as requested: includeObject: Invalid value: ${JSON.stringify(value)}: must be 'Metadata', 'Object', 'None', or empty`,
  );
}

function objectOfRow(object: KubeObject, include: IncludeObject, version: MetaVersion): TableRow['object'] {
  switch (include) {
    case 'None':
      return null;
    case 'Metadata':
      return partialMetadata(object, version);
    case 'Object':
      return object;
  }
}

interface Layout {
  readonly columns: readonly TableColumn[];
  readonly definitions: readonly ColumnDefinition[];
}

const layouts = new WeakMap<Resource, Layout>();

function layoutOf(resource: Resource): Layout {
  let layout = layouts.get(resource);
  if (layout === undefined) {
    // Events show their name last, so a kind that defines the column itself is not changed.
    const placed = resource.columns.some((column) => column.name === NAME.name);
    const columns = placed ? resource.columns : [NAME, ...resource.columns];
    layout = { columns, definitions: columns.map(definitionOf) };
    layouts.set(resource, layout);
  }
  return layout;
}

function definitionOf({ name, type, format, description, priority }: TableColumn): ColumnDefinition {
  const isName = name === NAME.name;
  return {
    name,
    type,
    format: format ?? (isName ? 'name' : ''),
    description: description ?? (isName ? NAME_DESCRIPTION : ''),
    priority: priority ?? 0,
  };
}

type Cell = string | number | boolean | null;

const RFC_3339 = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d+)?(Z|[+-]\d{2}:\d{2})$/;

/** Formats one cell by the type of its column. Values of the wrong type show as empty. */
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
