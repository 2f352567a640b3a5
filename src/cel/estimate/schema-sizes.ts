/**
 * Estimates the maximum size of values of a schema: from maxItems, maxLength and similar fields, or else from the
 * maximum size of a request. The figures decide which rules a CustomResourceDefinition can have, so they are those of
 * Kubernetes.
 */
import { escapeFieldName } from '#cel/check/field-names.ts';
import { withObjectNames } from '#cel/check/object-meta.ts';
import type { Schema } from '#kube/schema.ts';

export const MAX_REQUEST_BYTES = 3 * 1024 * 1024;
const QUOTES = 2;
const MAX_BYTES_PER_CHARACTER = 4;
const MAX_DEPTH = 64;

/** The minimum and maximum JSON length of strings with a format. */
const FORMATS: ReadonlyMap<string, { readonly shortest: number; readonly longest: number }> = new Map([
  ['duration', { shortest: 3, longest: 32 }],
  ['date', { shortest: 12, longest: 12 }],
  ['date-time', { shortest: 21, longest: 32 }],
]);

export interface SizeEstimate {
  /** Maximum number of items, entries or bytes. */
  readonly maxElements: number;
  /** Minimum JSON length of one value. */
  readonly minBytes: number;
  /** Keys are the escaped names that expressions use. */
  readonly fields?: ReadonlyMap<string, SizeEstimate>;
  readonly element?: SizeEstimate;
  readonly key?: SizeEstimate;
}

const scalar = (minBytes: number): SizeEstimate => ({ maxElements: 0, minBytes });
const KEY: SizeEstimate = { maxElements: 0, minBytes: QUOTES };

/** Sizes of nested schemas, to share between calls for the same tree. */
export type SizeCache = Map<Schema, SizeEstimate | undefined>;

/**
 * Returns undefined if expressions cannot see a value of this schema. `root` is true for the schema of a whole object,
 * which also has its names.
 */
export function estimateSizes(schema: Schema, root: boolean, known: SizeCache = new Map()): SizeEstimate | undefined {
  return estimate(schema, root, known, 0);
}

function estimate(schema: Schema, root: boolean, known: SizeCache, depth: number): SizeEstimate | undefined {
  if (depth > MAX_DEPTH) return undefined;
  if (schema['x-kubernetes-int-or-string'] === true) return { maxElements: MAX_REQUEST_BYTES - QUOTES, minBytes: 1 };
  const seen = root ? withObjectNames(schema) : schema;
  switch (seen.type) {
    case 'array':
      return estimateList(seen, known, depth);
    case 'object':
      return estimateObject(seen, known, depth);
    case 'string':
      return estimateString(seen);
    case 'boolean':
      return scalar(4);
    case 'number':
    case 'integer':
      return scalar(1);
    default:
      return undefined;
  }
}

function estimateNested(schema: Schema, known: SizeCache, depth: number): SizeEstimate | undefined {
  if (!known.has(schema)) {
    known.set(schema, estimate(schema, schema['x-kubernetes-embedded-resource'] === true, known, depth + 1));
  }
  return known.get(schema);
}

function estimateList({ items, maxItems }: Schema, known: SizeCache, depth: number): SizeEstimate | undefined {
  const element = items && estimateNested(items, known, depth);
  if (element === undefined) return undefined;
  const most = Math.floor((MAX_REQUEST_BYTES - QUOTES) / (element.minBytes + 1));
  return { maxElements: maxItems === undefined ? most : Math.max(0, maxItems), minBytes: QUOTES, element };
}

function estimateObject(schema: Schema, known: SizeCache, depth: number): SizeEstimate | undefined {
  const { additionalProperties: values, maxProperties } = schema;
  if (typeof values === 'object') {
    const element = estimateNested(values, known, depth);
    if (element === undefined) return undefined;
    // Each entry has a key of at least two letters, quotes, a colon and a comma.
    const most = Math.floor((MAX_REQUEST_BYTES - QUOTES) / (element.minBytes + 6));
    const maxElements = maxProperties === undefined ? most : Math.max(0, maxProperties);
    return { maxElements, minBytes: QUOTES, element, key: KEY };
  }
  const fields = new Map<string, SizeEstimate>();
  const required = new Set(schema.required);
  let minBytes = QUOTES;
  for (const [name, property] of Object.entries(schema.properties ?? {})) {
    const sizes = estimateNested(property, known, depth);
    if (sizes === undefined) continue;
    const escaped = escapeFieldName(name);
    if (escaped !== undefined) fields.set(escaped, sizes);
    const isDefaulted = property.default !== undefined && property.default !== null;
    if (required.has(name) && !isDefaulted) minBytes += Buffer.byteLength(name) + sizes.minBytes + 4;
  }
  return { maxElements: 0, minBytes, fields };
}

function estimateString({ format, maxLength, enum: values = [] }: Schema): SizeEstimate {
  const formatted = FORMATS.get(format ?? '');
  if (formatted !== undefined) return { maxElements: formatted.longest, minBytes: formatted.shortest };
  const longest = MAX_REQUEST_BYTES - QUOTES;
  if (format === 'byte') return { maxElements: Math.max(0, maxLength ?? longest), minBytes: QUOTES };
  if (maxLength !== undefined) {
    return { maxElements: Math.max(0, maxLength) * MAX_BYTES_PER_CHARACTER, minBytes: QUOTES };
  }
  if (values.length === 0) return { maxElements: longest, minBytes: QUOTES };
  const lengths = values.map((value) => (typeof value === 'string' ? Buffer.byteLength(value) : 0));
  return { maxElements: Math.max(...lengths), minBytes: QUOTES };
}

/**
 * Follows a path of fields, `@items`, `@values` and `@keys`. The first step is the name of the variable and is ignored.
 */
export function findSizeEstimate(root: SizeEstimate, path: readonly string[]): SizeEstimate | undefined {
  let here: SizeEstimate | undefined = root;
  for (const step of path.slice(1)) {
    if (step === '@items' || step === '@values') here = here.element;
    else if (step === '@keys') here = here.key;
    else here = here.fields?.get(step);
    if (here === undefined) return undefined;
  }
  return here;
}
