/**
 * How managedFields stand in the bytes of a stored object. They are a third of it and take longer to parse than all the
 * rest, but objects of a kind share the very same sets: the text of a set is kept with its value, once for all objects.
 *
 *   {"apiVersion":..,"kind":..,"metadata":{..,"managedFields":[{..,"fieldsType":"FieldsV1","fieldsV1":{..}},..]},..}
 *
 * Whatever does not look like this (an older version wrote it, or a name is odd) is parsed as any JSON.
 */
import type { KubeObject, ManagedFieldsEntry } from '#kube/meta.ts';
import type { FieldsV1 } from '#engine/managed-fields/entries.ts';

/** Shared by many objects: frozen. Bounded in number and size; the oldest goes. */
const fieldsByText = new Map<string, FieldsV1>();
const textByFields = new WeakMap<object, string>();
const MAX_KEPT = 2000;
const MAX_KEPT_CHARACTERS = 4 * 1024 * 1024;
/** Sets of that size are hardly ever the same. */
const MAX_SHARED_CHARACTERS = 64 * 1024;
let keptCharacters = 0;

/** The value of a canonical FieldsV1 text, which is shared. */
export function fieldsOfText(text: string): FieldsV1 {
  const known = fieldsByText.get(text);
  if (known !== undefined) return known;
  const fields = frozen(JSON.parse(text) as FieldsV1);
  if (text.length <= MAX_SHARED_CHARACTERS) keep(text, fields);
  return fields;
}

function keep(text: string, fields: FieldsV1): void {
  // A slice would hold the whole text that it was cut from.
  const own = Buffer.from(text).toString();
  fieldsByText.set(own, fields);
  textByFields.set(fields, own);
  keptCharacters += own.length;
  for (const oldest of fieldsByText.keys()) {
    if (fieldsByText.size <= MAX_KEPT && keptCharacters <= MAX_KEPT_CHARACTERS) break;
    fieldsByText.delete(oldest);
    keptCharacters -= oldest.length;
  }
}

function frozen(fields: FieldsV1): FieldsV1 {
  for (const element in fields) frozen(fields[element] as FieldsV1);
  return Object.freeze(fields);
}

const OWNERS = '"managedFields":[';
const FIELDS = '"fieldsType":"FieldsV1","fieldsV1":';

/** The object as JSON, with its name and metadata first. */
export function storedText(object: KubeObject): string {
  const { apiVersion, kind, metadata } = object;
  const { managedFields } = metadata;
  if (managedFields === undefined || managedFields.length === 0) return JSON.stringify(object);
  let text = `{"apiVersion":${JSON.stringify(apiVersion)},"kind":${JSON.stringify(kind)},"metadata":`;
  text += metadataText(metadata as Record<string, unknown>, managedFields);
  for (const field of Object.keys(object)) {
    if (field === 'apiVersion' || field === 'kind' || field === 'metadata') continue;
    const value = JSON.stringify(object[field]);
    if (value !== undefined) text += `,${JSON.stringify(field)}:${value}`;
  }
  return `${text}}`;
}

function metadataText(metadata: Record<string, unknown>, owners: readonly ManagedFieldsEntry[]): string {
  const rest: Record<string, unknown> = {};
  for (const field of Object.keys(metadata)) if (field !== 'managedFields') rest[field] = metadata[field];
  const text = JSON.stringify(rest);
  const comma = text.length > 2 ? ',' : '';
  return `${text.slice(0, -1)}${comma}${OWNERS}${owners.map(entryText).join(',')}]}`;
}

function entryText(entry: ManagedFieldsEntry): string {
  const { manager, operation, apiVersion, time, subresource, fieldsV1 = {} } = entry;
  const head = JSON.stringify({ manager, operation, apiVersion, time, subresource });
  return `${head.slice(0, -1)},${FIELDS}${textByFields.get(fieldsV1) ?? JSON.stringify(fieldsV1)}}`;
}

/** What storedText wrote. */
export function parseStored(text: string): KubeObject {
  const at = text.indexOf(OWNERS);
  return (at < 0 ? undefined : parseWithOwners(text, at)) ?? (JSON.parse(text) as KubeObject);
}

/** In strings quotes are escaped, so none of these marks can be a part of one. */
const START = /^\{"apiVersion":"[^"\\]*","kind":"[^"\\]*","metadata":\{/;

function parseWithOwners(text: string, at: number): KubeObject | undefined {
  const start = START.exec(text)?.[0].length;
  if (start === undefined || !isField(text, start, at)) return undefined;
  const end = text.indexOf('}}]', at) + 2;
  if (end < 2) return undefined;
  try {
    const owners = parseOwners(text.slice(at + OWNERS.length, end));
    if (owners === undefined) return undefined;
    // Were the end within a string, the quotes of the rest would be odd in number, and it would not be JSON.
    const before = text.charCodeAt(at - 1) === COMMA ? at - 1 : at;
    const object = JSON.parse(text.slice(0, before) + text.slice(end + 1)) as KubeObject;
    object.metadata.managedFields = owners;
    return object;
  } catch {
    return undefined;
  }
}

/** The text of entries, one after the other. */
function parseOwners(text: string): ManagedFieldsEntry[] | undefined {
  const parts = text.split(FIELDS);
  const owners: ManagedFieldsEntry[] = [];
  let head = parts[0]!;
  for (let i = 1; i < parts.length; i++) {
    const part = parts[i]!;
    const last = i === parts.length - 1;
    const end = last ? part.length - 1 : part.lastIndexOf('},{"');
    if (end < 0) return undefined;
    const entry = JSON.parse(`${head}"fieldsType":"FieldsV1"}`) as ManagedFieldsEntry;
    entry.fieldsV1 = fieldsOfText(part.slice(0, end));
    owners.push(entry);
    head = part.slice(end + 2);
  }
  return owners.length === 0 ? undefined : owners;
}

const [COMMA, QUOTE, BACKSLASH] = [0x2c, 0x22, 0x5c];

/** Whether what begins at `at` is a field of the object that begins at `start`, not of something in it. */
function isField(text: string, start: number, at: number): boolean {
  let depth = 0;
  let quoted = false;
  for (let i = start; i < at; i++) {
    const code = text.charCodeAt(i);
    if (code === BACKSLASH) i++;
    else if (code === QUOTE) quoted = !quoted;
    else if (quoted) continue;
    else if (code === 0x7b || code === 0x5b) depth++;
    else if (code === 0x7d || code === 0x5d) depth--;
    if (depth < 0) return false;
  }
  return depth === 0 && !quoted;
}
