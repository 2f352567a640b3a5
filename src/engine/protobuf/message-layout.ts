/**
 * The layout of all supported messages, compiled on first use from the types of the kinds (registry/kinds/) and from
 * special-messages.ts. It is that of Kubernetes 1.32, with a few later fields: others are unknown and skipped.
 */
import { SPECIAL_MESSAGES } from '#engine/protobuf/special-messages.ts';
import { type ApiField, type ApiType, apiTypeOf, optional } from '#engine/registry/kinds/api-type.ts';
import { metadataSchema } from '#engine/registry/kinds/meta/object-meta.ts';
import { isQuantity } from '#kube/schema-dsl.ts';
import type { Schema } from '#kube/schema.ts';
import { invariant } from '#lib/invariant.ts';

export type ProtobufScalar = 'string' | 'bool' | 'int32' | 'int64' | 'double' | 'bytes';

/** A type of the API, or the name of a special message. */
export type MessageSource = ApiType | string;

type ValueLayout =
  | { readonly scalar: ProtobufScalar; readonly message?: undefined }
  | { readonly scalar?: undefined; readonly message: MessageSource };

type FieldLayout = ValueLayout & {
  readonly number: number;
  /** '' for an inlined message. */
  readonly name: string;
  readonly shape: 'one' | 'list' | 'map';
  readonly optional: boolean;
  readonly pointer: boolean;
};

export type MessageField = FieldLayout & {
  /** Index of the field's value in the values of a message. */
  readonly index: number;
};

export interface Message {
  /** The name without its package: `Container`. */
  readonly name: string;
  readonly fields: readonly MessageField[];
  /** Sparse, by field number. */
  readonly byNumber: readonly (MessageField | undefined)[];
}

const compiled = new Map<MessageSource, Message>();
const compiledKinds = new Map<ApiType, Message>();

/** Returns the message of a type or special message. */
export function messageOf(source: MessageSource): Message {
  let message = compiled.get(source);
  if (message === undefined) {
    message = typeof source === 'string' ? specialMessage(source) : compile(source.name, fieldsOfType(source));
    compiled.set(source, message);
  }
  return message;
}

/** Returns the message of a kind, which begins with its metadata. The types of kinds do not have it. */
export function messageOfKind(type: ApiType): Message {
  let message = compiledKinds.get(type);
  if (message === undefined) {
    message = compile(type.name, [metadataField, ...fieldsOfType(type)]);
    compiledKinds.set(type, message);
  }
  return message;
}

/** Returns the last part of the name of a message, which Kubernetes shows in errors. */
export function shortName(source: MessageSource): string {
  const name = typeof source === 'string' ? source : source.name;
  return name.slice(name.lastIndexOf('.') + 1);
}

function compile(name: string, layouts: readonly FieldLayout[]): Message {
  const fields = layouts.map((layout, index): MessageField => ({ index, ...layout }));
  const byNumber: (MessageField | undefined)[] = [];
  for (const field of fields) {
    invariant(byNumber[field.number] === undefined, `${name} has one field ${field.number}`);
    byNumber[field.number] = field;
  }
  return { name: shortName(name), fields, byNumber };
}

const metadataField = fieldOfType('metadata', optional(1, metadataSchema, ''), 1);

function fieldsOfType(type: ApiType): FieldLayout[] {
  const layouts: FieldLayout[] = [];
  const inlined = new Set<ApiType>();
  for (const [name, field] of Object.entries(type.fields)) {
    if (field.inlined !== undefined) {
      const { number, type: message } = field.inlined;
      if (!inlined.has(message)) layouts.push(inlinedField(number, message));
      inlined.add(message);
    } else if (field.number !== undefined) {
      layouts.push(fieldOfType(name, field, field.number));
    }
  }
  return layouts;
}

function inlinedField(number: number, message: ApiType): FieldLayout {
  return { number, name: '', message, shape: 'one', optional: false, pointer: false };
}

function fieldOfType(name: string, field: ApiField, number: number): FieldLayout {
  const { schema, omitEmpty, pointer, message } = field;
  const { items, additionalProperties: values } = schema;
  const isMap = typeof values === 'object';
  return {
    number,
    name,
    ...(message === undefined ? valueLayout(name, items ?? (isMap ? values : schema)) : { message }),
    shape: items !== undefined ? 'list' : isMap ? 'map' : 'one',
    optional: omitEmpty,
    pointer,
  };
}

function valueLayout(name: string, schema: Schema): ValueLayout {
  const { type, format } = schema;
  if (type === 'boolean') return { scalar: 'bool' };
  if (type === 'number') return { scalar: 'double' };
  if (type === 'integer') return { scalar: format === 'int64' ? 'int64' : 'int32' };
  if (type === 'string' && format === 'date-time') return { message: 'Time' };
  if (type === 'string') return { scalar: format === 'byte' ? 'bytes' : 'string' };
  if (isQuantity(schema)) return { message: 'Quantity' };
  if (schema['x-kubernetes-int-or-string'] === true) return { message: 'IntOrString' };
  const message = apiTypeOf(schema);
  invariant(message !== undefined, `the schema of ${name} determines its type on the wire`);
  return { message };
}

const SCALARS: ReadonlySet<string> = new Set<ProtobufScalar>(['string', 'bool', 'int32', 'int64', 'double', 'bytes']);

/** The text of the special messages by name. */
const specialTexts = new Map(
  [...SPECIAL_MESSAGES.matchAll(/^(\w+)\n((?: .*\n)*)/gm)].map(([, name = '', body = '']) => [name, body.trim()]),
);

export const specialMessageNames = (): string[] => [...specialTexts.keys()];

/** An unknown name is a bug. */
function specialMessage(name: string): Message {
  const text = specialTexts.get(name);
  invariant(text !== undefined, `message ${name} exists`);
  return compile(name, text === '' ? [] : text.split(/;\s*/).map(parseField));
}

function parseField(text: string): FieldLayout {
  const parts = /^(\d+) ([^\s?]+)(\??) (\*?)(\w+)(\[\]|\{\}|)$/.exec(text);
  invariant(parts !== null, `"${text}" is a field`);
  const [, number, name = '', omitEmpty, pointer, type = '', suffix] = parts;
  return {
    number: Number(number),
    name,
    ...(SCALARS.has(type) ? { scalar: type as ProtobufScalar } : { message: type }),
    shape: suffix === '[]' ? 'list' : suffix === '{}' ? 'map' : 'one',
    optional: omitEmpty === '?',
    pointer: pointer === '*',
  };
}
