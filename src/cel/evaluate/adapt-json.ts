/**
 * Views of parsed JSON as CEL values. Nothing is copied or converted before an expression reads it, and each part is
 * converted once per view. A schema adds what JSON lacks: which numbers are ints, and which strings are times or bytes.
 */
import type { Schema } from '#kube/schema.ts';
import { CelFault, CelList, CelMap, type CelValue, type ElementIdentity } from '#cel/value.ts';
import { parseDuration, parseTimestamp } from '#cel/evaluate/text/time-text.ts';

export { toJson } from '#cel/evaluate/to-json.ts';

const MAX_INT = 2 ** 63;

/** A string that does not match the format of its schema stays a string here; as a field of a map it is a fault. */
export function adaptJson(value: unknown, schema?: Schema): CelValue {
  const adapted = adapt(value, schema);
  return adapted instanceof CelFault ? (value as string) : adapted;
}

function adapt(value: unknown, schema: Schema | undefined): CelValue | CelFault {
  switch (typeof value) {
    case 'string':
      return schema?.format === undefined ? value : parseFormattedString(value, schema);
    case 'number':
      return adaptNumber(value, schema);
    case 'boolean':
      return value;
    case 'object':
      if (value === null) return null;
      return Array.isArray(value) ? new JsonList(value, schema) : new JsonMap(value as JsonObject, schema);
    default:
      return null;
  }
}

function adaptNumber(value: number, schema: Schema | undefined): bigint | number {
  if (schema?.type === 'number') return value;
  return Number.isInteger(value) && Math.abs(value) < MAX_INT ? BigInt(value) : value;
}

/**
 * Reports whether converting the value costs less than caching it. Parsing a formatted string is expensive, but is
 * charged as a single access.
 */
function isCheap(value: unknown, schema: Schema | undefined): boolean {
  if (typeof value === 'string') return schema?.format === undefined;
  return typeof value !== 'object' || value === null;
}

const CHUNK_BITS = 8;
const CHUNK_MASK = (1 << CHUNK_BITS) - 1;

const AS_SET: ElementIdentity = { keys: [] };

type JsonObject = Readonly<Record<string, unknown>>;

class JsonList extends CelList {
  readonly #source: readonly unknown[];
  readonly #schema: Schema | undefined;
  readonly #items: Schema | undefined;
  /** Stored in chunks, so that reading one element of a long list does not allocate space for all others. */
  #views: (CelValue[] | undefined)[] | undefined;

  constructor(source: readonly unknown[], schema: Schema | undefined) {
    super();
    this.#source = source;
    this.#schema = schema;
    this.#items = schema?.items;
  }

  override get identity(): ElementIdentity | undefined {
    switch (this.#schema?.['x-kubernetes-list-type']) {
      case 'set':
        return AS_SET;
      case 'map':
        return { keys: this.#schema['x-kubernetes-list-map-keys'] ?? [] };
      default:
        return undefined;
    }
  }

  override get size(): number {
    return this.#source.length;
  }

  override at(index: number): CelValue {
    const value = this.#source[index];
    if (typeof value === 'string' && this.#items?.format === undefined) return value;
    this.#views ??= [];
    const chunk = (this.#views[index >>> CHUNK_BITS] ??= []);
    const known = chunk[index & CHUNK_MASK];
    if (known !== undefined) return known;
    // Numbers are cached too: otherwise a search in a list would spend its time on creating bigints.
    const view = adaptJson(value, this.#items);
    chunk[index & CHUNK_MASK] = view;
    return view;
  }
}

class JsonMap extends CelMap {
  readonly #source: JsonObject;
  readonly #schema: Schema | undefined;
  #views: Map<string, CelValue | CelFault> | undefined;
  #keys: readonly string[] | undefined;

  constructor(source: JsonObject, schema: Schema | undefined) {
    super();
    this.#source = source;
    this.#schema = schema;
  }

  override get size(): number {
    return this.#ownKeys().length;
  }

  override keys(): Iterable<CelValue> {
    return this.#ownKeys();
  }

  override has(key: CelValue): boolean {
    return typeof key === 'string' && Object.hasOwn(this.#source, key) && this.#source[key] !== undefined;
  }

  override get(key: CelValue): CelValue | CelFault | undefined {
    if (typeof key !== 'string' || !Object.hasOwn(this.#source, key)) return undefined;
    const value = this.#source[key];
    if (value === undefined) return undefined;
    const schema = this.#schemaOf(key);
    if (isCheap(value, schema)) return adapt(value, schema);
    const known = this.#views?.get(key);
    if (known !== undefined) return known;
    const view = adapt(value, schema);
    this.#views ??= new Map();
    this.#views.set(key, view);
    return view;
  }

  #ownKeys(): readonly string[] {
    if (this.#keys !== undefined) return this.#keys;
    const keys = Object.keys(this.#source);
    const isComplete = keys.every((key) => this.#source[key] !== undefined);
    return (this.#keys = isComplete ? keys : keys.filter((key) => this.#source[key] !== undefined));
  }

  #schemaOf(key: string): Schema | undefined {
    const schema = this.#schema;
    if (schema === undefined) return undefined;
    if (schema.properties !== undefined && Object.hasOwn(schema.properties, key)) return schema.properties[key];
    return typeof schema.additionalProperties === 'object' ? schema.additionalProperties : undefined;
  }
}

const BASE64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/;

/** Converts a string with a schema format to a time or bytes. Returns it unchanged if CEL has no type for the format. */
function parseFormattedString(text: string, schema: Schema): CelValue | CelFault {
  if (schema['x-kubernetes-int-or-string'] === true) return text;
  switch (schema.format) {
    case 'date-time':
      return parseTimestamp(text.toUpperCase()) ?? new CelFault(`Invalid date-time format: ${text.slice(0, 64)}`);
    case 'date':
      return parseTimestamp(`${text}T00:00:00Z`) ?? new CelFault(`Invalid date format: ${text.slice(0, 64)}`);
    case 'duration':
      return parseDuration(text) ?? new CelFault(`Invalid duration format: ${text.slice(0, 64)}`);
    case 'byte':
      if (!BASE64.test(text)) return new CelFault('Invalid byte format: illegal base64 data');
      return new Uint8Array(Buffer.from(text, 'base64'));
    default:
      return text;
  }
}
