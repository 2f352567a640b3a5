/**
 * The bytes of stored objects. They are trusted: request bodies are decoded in body/.
 *
 * managedFields take a third of the bytes and longer to parse than all the rest, but objects of a kind share the same
 * sets: the text of a set is cached with its value, once for all objects.
 *
 *   {"apiVersion":..,"kind":..,"metadata":{..,"managedFields":[{..,"fieldsType":"FieldsV1","fieldsV1":{..}},..]},..}
 *
 * Any other form (from an older version, or with unusual names) is parsed as ordinary JSON.
 */
import type { KubeObject, ManagedFieldsEntry } from '#kube/meta.ts';

export type FieldsV1 = Record<string, unknown>;

export function decodeStored(bytes: Buffer): KubeObject {
  return parseStored(bytes.toString('utf8'));
}

/** Returns the bytes that are stored and served, with this revision as resourceVersion. */
export function encodeStored(object: KubeObject, revision: number): Buffer {
  object.metadata.resourceVersion = String(revision);
  const text = storedText(object);
  // Not from the shared pool, because the buffer lives as long as the object.
  const bytes = Buffer.allocUnsafeSlow(Buffer.byteLength(text));
  bytes.write(text);
  return bytes;
}

/** Field sets by text. Shared by many objects, so frozen. Bounded in number and size; the oldest is evicted. */
const fieldsByText = new Map<string, FieldsV1>();
const textByFields = new WeakMap<object, string>();
const MAX_KEPT = 2000;
const MAX_KEPT_CHARACTERS = 4 * 1024 * 1024;
/** Larger sets rarely repeat. */
const MAX_SHARED_CHARACTERS = 64 * 1024;
let keptCharacters = 0;

/** Returns the value of a canonical FieldsV1 text, shared unless it is large. */
export function fieldsOfText(text: string): FieldsV1 {
  const known = fieldsByText.get(text);
  if (known !== undefined) return known;
  const fields = JSON.parse(text) as FieldsV1;
  if (text.length <= MAX_SHARED_CHARACTERS) keep(text, freeze(fields));
  return fields;
}

/** Reports whether objects share the set, so it is not large. */
export const isSharedFields = (fields: FieldsV1): boolean => textByFields.has(fields);

function keep(text: string, fields: FieldsV1): void {
  // A slice would keep the whole original text alive.
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

function freeze(fields: FieldsV1): FieldsV1 {
  for (const element in fields) freeze(fields[element] as FieldsV1);
  return Object.freeze(fields);
}

const OWNERS = '"managedFields":[';
const FIELDS = '"fieldsType":"FieldsV1","fieldsV1":';

/** Encodes an object as JSON, with its apiVersion, kind and metadata first. */
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

/** Parses the result of storedText. */
export function parseStored(text: string): KubeObject {
  const at = text.indexOf(OWNERS);
  return (at < 0 ? undefined : parseWithOwners(text, at)) ?? (JSON.parse(text) as KubeObject);
}

/** Quotes in strings are escaped, so none of these marks can be part of a string. */
const START = /^\{"apiVersion":"[^"\\]*","kind":"[^"\\]*","metadata":\{/;

function parseWithOwners(text: string, at: number): KubeObject | undefined {
  const start = START.exec(text)?.[0].length;
  if (start === undefined || !isField(text, start, at)) return undefined;
  try {
    const read = parseOwners(text, at + OWNERS.length);
    if (read === undefined) return undefined;
    const before = text.charCodeAt(at - 1) === COMMA ? at - 1 : at;
    const object = JSON.parse(text.slice(0, before) + text.slice(read.end)) as KubeObject;
    object.metadata.managedFields = read.owners;
    return object;
  } catch {
    return undefined;
  }
}

/** Parses the entries and returns where their list ends; undefined or an error if they do not have our form. */
function parseOwners(text: string, from: number): { owners: ManagedFieldsEntry[]; end: number } | undefined {
  const owners: ManagedFieldsEntry[] = [];
  for (let at = from; ; at++) {
    const mark = text.indexOf(FIELDS, at);
    if (mark < 0) return undefined;
    const entry = JSON.parse(`${text.slice(at, mark)}"fieldsType":"FieldsV1"}`) as ManagedFieldsEntry;
    const known = readSet(text, mark + FIELDS.length);
    entry.fieldsV1 = known.fields;
    owners.push(entry);
    at = mark + FIELDS.length + known.text.length;
    if (text.charCodeAt(at++) !== CLOSE) return undefined;
    const next = text.charCodeAt(at);
    if (next === END_OF_LIST) return { owners, end: at + 1 };
    if (next !== COMMA) return undefined;
  }
}

interface CachedSet {
  readonly text: string;
  readonly fields: FieldsV1;
}

/** Recently read sets are tried first: comparing text is faster than a lookup. */
const recent: CachedSet[] = [];
const MAX_RECENT = 8;
let nextRecent = 0;

/** Returns the set that begins at a position. A cached set ends at its own end: no object is a prefix of another. */
function readSet(text: string, at: number): CachedSet {
  for (const known of recent) if (text.startsWith(known.text, at)) return known;
  const part = text.slice(at, endOfObject(text, at));
  const fields = fieldsOfText(part);
  const own = textByFields.get(fields);
  if (own === undefined) return { text: part, fields };
  const known = { text: own, fields };
  recent[nextRecent] = known;
  nextRecent = (nextRecent + 1) % MAX_RECENT;
  return known;
}

function endOfObject(text: string, start: number): number {
  let depth = 0;
  let quoted = false;
  for (let i = start; i < text.length; i++) {
    const code = text.charCodeAt(i);
    if (code === BACKSLASH) i++;
    else if (code === QUOTE) quoted = !quoted;
    else if (quoted) continue;
    else if (code === OPEN) depth++;
    else if (code === CLOSE && --depth === 0) return i + 1;
  }
  return text.length;
}

const COMMA = 0x2c;
const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const OPEN = 0x7b;
const CLOSE = 0x7d;
const END_OF_LIST = 0x5d;

/** Reports whether the text at `at` is a field of the object that begins at `start`, not of a nested one. */
function isField(text: string, start: number, at: number): boolean {
  let depth = 0;
  let quoted = false;
  for (let i = start; i < at; i++) {
    const code = text.charCodeAt(i);
    if (code === BACKSLASH) i++;
    else if (code === QUOTE) quoted = !quoted;
    else if (quoted) continue;
    else if (code === OPEN || code === 0x5b) depth++;
    else if (code === CLOSE || code === END_OF_LIST) depth--;
    if (depth < 0) return false;
  }
  return depth === 0 && !quoted;
}
