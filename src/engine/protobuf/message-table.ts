/**
 * The layout of all supported messages, compiled on first use from the compact notation of tables/. It is that of
 * Kubernetes 1.32: later fields are unknown and skipped, as by a server of 1.32.
 *
 *   Container                 a message; its fields follow indented and separated by `;`
 *     1 name string           number on the wire, JSON name, type; always written, including zero values
 *     2 image? string         omitted if it is empty (`omitempty`)
 *     3 command? string[]     list
 *     4 limits? Quantity{}    map with string keys
 *     5 stdin? *bool          pointer: a zero value on the wire was set and is kept
 *     6 ...ProbeHandler       inlined: its fields become part of this message
 */
import { ACCESS_TABLE } from '#engine/protobuf/tables/access.ts';
import { ADMISSION_TABLE } from '#engine/protobuf/tables/admission.ts';
import { CONTAINER_TABLE } from '#engine/protobuf/tables/container.ts';
import { CORE_TABLE } from '#engine/protobuf/tables/core.ts';
import { CUSTOM_RESOURCE_DEFINITION_TABLE } from '#engine/protobuf/tables/custom-resource-definition.ts';
import { META_TABLE } from '#engine/protobuf/tables/meta.ts';
import { NODE_TABLE } from '#engine/protobuf/tables/node.ts';
import { POD_TABLE } from '#engine/protobuf/tables/pod.ts';
import { VOLUME_TABLE } from '#engine/protobuf/tables/volume.ts';
import { WORKLOAD_TABLE } from '#engine/protobuf/tables/workload.ts';
import { invariant } from '#lib/invariant.ts';

export type ProtobufScalar = 'string' | 'bool' | 'int32' | 'int64' | 'double' | 'bytes';

export interface MessageField {
  /** Index of the field's value in the values of a message. */
  readonly index: number;
  readonly number: number;
  /** '' for an inlined message. */
  readonly name: string;
  /** Undefined for a message. */
  readonly scalar: ProtobufScalar | undefined;
  /** Name of the message; '' for a scalar. */
  readonly message: string;
  readonly shape: 'one' | 'list' | 'map';
  readonly optional: boolean;
  readonly pointer: boolean;
}

export interface Message {
  readonly name: string;
  readonly fields: readonly MessageField[];
  /** Sparse, by field number. */
  readonly byNumber: readonly (MessageField | undefined)[];
}

const SCALARS: ReadonlySet<string> = new Set<ProtobufScalar>(['string', 'bool', 'int32', 'int64', 'double', 'bytes']);

const sources = [
  META_TABLE,
  CORE_TABLE,
  NODE_TABLE,
  POD_TABLE,
  CONTAINER_TABLE,
  VOLUME_TABLE,
  WORKLOAD_TABLE,
  ACCESS_TABLE,
  ADMISSION_TABLE,
  CUSTOM_RESOURCE_DEFINITION_TABLE,
];
const compiled = new Map<string, Message>();
let bodies: Map<string, string> | undefined;

/** Returns the message of a name from our own tables; an unknown one is a bug. */
export function messageNamed(name: string): Message {
  const known = compiled.get(name);
  if (known !== undefined) return known;
  bodies ??= splitBodies();
  const body = bodies.get(name);
  invariant(body !== undefined, `message ${name} has a table`);
  const message = compile(name, body);
  compiled.set(name, message);
  return message;
}

export function messageNames(): string[] {
  bodies ??= splitBodies();
  return [...bodies.keys()];
}

function splitBodies(): Map<string, string> {
  const found = new Map<string, string>();
  for (const match of sources.join('').matchAll(/^([A-Z][\w.]*)\n((?: .*\n)*)/gim)) {
    const [, name = '', body = ''] = match;
    invariant(!found.has(name), `message ${name} has one table`);
    found.set(name, body);
  }
  return found;
}

function compile(name: string, body: string): Message {
  const texts = body.trim() === '' ? [] : body.trim().split(/;\s*/);
  const fields = texts.map(compileField);
  const byNumber: (MessageField | undefined)[] = [];
  for (const field of fields) {
    invariant(byNumber[field.number] === undefined, `${name} has one field ${field.number}`);
    byNumber[field.number] = field;
  }
  return { name, fields, byNumber };
}

function compileField(text: string, index: number): MessageField {
  const parts = /^(\d+) (?:\.\.\.|([^\s?]+)(\??) )(\*?)([\w.]+)(\[\]|\{\}|)$/.exec(text);
  invariant(parts !== null, `"${text}" is a field`);
  const [, number, name = '', optional, pointer, type = '', suffix] = parts;
  return {
    index,
    number: Number(number),
    name,
    scalar: SCALARS.has(type) ? (type as ProtobufScalar) : undefined,
    message: SCALARS.has(type) ? '' : type,
    shape: suffix === '[]' ? 'list' : suffix === '{}' ? 'map' : 'one',
    optional: optional === '?',
    pointer: pointer === '*',
  };
}
