/**
 * Compares the fields of all messages that we decode with those of Kubernetes (testing/kubernetes-fields.txt): a wrong
 * number would lose data silently.
 */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { protobufTypes } from '#engine/protobuf/decode-protobuf.ts';
import {
  type Message,
  type MessageField,
  messageOf,
  messageOfKind,
  type MessageSource,
  shortName,
  specialMessageNames,
} from '#engine/protobuf/message-layout.ts';
import { specialTypes } from '#engine/protobuf/special-types.ts';
import { type ApiType, apiType, apiTypeOf, optional, required } from '#engine/registry/kinds/api-type.ts';
import { deleteOptionsSchema } from '#engine/registry/kinds/meta/delete-options.ts';
import { int32, int64, list, str } from '#kube/schema-dsl.ts';

/** Fields in the notation of the file, by the name of the message, then by field number. */
const facts = readFacts(readFileSync(new URL('testing/kubernetes-fields.txt', import.meta.url), 'utf8'));

function readFacts(text: string): Map<string, Map<number, string>> {
  const messages = new Map<string, Map<number, string>>();
  for (const [, name = '', body = ''] of text.matchAll(/^(\w[\w.]*)\n((?: .*\n)*)/gm)) {
    const fields = messages.get(name) ?? new Map<number, string>();
    for (const field of body.trim().split(/;\s*/)) {
      if (field !== '') fields.set(Number.parseInt(field, 10), field);
    }
    messages.set(name, fields);
  }
  return messages;
}

/** The groups of the special messages, whose names we use without one. */
const GROUPS_OF_SPECIAL: Readonly<Record<string, string>> = {
  Unknown: 'runtime',
  TypeMeta: 'runtime',
  RawExtension: 'runtime',
  Quantity: 'resource',
  IntOrString: 'intstr',
  Time: 'meta.v1',
  MicroTime: 'meta.v1',
  FieldsV1: 'meta.v1',
  // Also a message of authorization.v1, with the same field.
  ExtraValue: 'authentication.v1',
};

const nameOf = (source: MessageSource): string =>
  typeof source === 'string' ? `${GROUPS_OF_SPECIAL[source] ?? 'apiextensions.v1'}.${source}` : source.name;

const groupOf = (name: string): string => name.slice(0, name.lastIndexOf('.'));

/** Writes a field in the notation of the file, which omits the group of a message of the same group. */
function factOf(field: MessageField, group: string): string {
  const { number, name, shape } = field;
  const message = field.message === undefined ? undefined : nameOf(field.message);
  const isSameGroup = message !== undefined && (groupOf(message) === group || shortName(message) === 'ExtraValue');
  const type = message === undefined ? field.scalar : isSameGroup ? shortName(message) : message;
  if (name === '') return `${number} ...${type}`;
  const suffix = shape === 'list' ? '[]' : shape === 'map' ? '{}' : '';
  return `${number} ${name}${field.optional ? '?' : ''} ${field.pointer ? '*' : ''}${type}${suffix}`;
}

/**
 * Removes what has no effect: whether a struct has `omitempty`, because Go writes it always; and the JSON properties of
 * messages with a JSON form of their own.
 */
function comparable(text: string, message: string, field: MessageField | undefined): string {
  if (specialTypes.has(shortName(message)) || message === 'runtime.Unknown') {
    return text.replace(/\?? \*?/g, ' ').replace('...', 'typeMeta ');
  }
  const isStruct = field?.message !== undefined && field.shape === 'one' && !field.pointer;
  return isStruct ? text.replace('? ', ' ') : text;
}

function differences(source: MessageSource, { fields }: Message): string[] {
  const name = nameOf(source);
  const known = facts.get(name);
  if (known === undefined) return [`${name} is not a message of Kubernetes`];
  const seen = new Set(fields.map(({ number }) => number));
  return [
    ...fields.flatMap((field) => {
      const want = known.get(field.number) ?? 'none';
      const got = factOf(field, groupOf(name));
      return comparable(got, name, field) === comparable(want, name, field)
        ? []
        : [`${name}: ${got}, but Kubernetes has ${want}`];
    }),
    ...[...known].flatMap(([number, text]) => (seen.has(number) ? [] : [`${name}: no field ${text}`])),
  ];
}

/** Returns the messages of all kinds and all messages within them, including those of special messages. */
function everyMessage(): Map<MessageSource, Message> {
  const found = new Map<MessageSource, Message>();
  const add = (source: MessageSource, message: Message) => {
    if (found.has(source)) return;
    found.set(source, message);
    for (const field of message.fields) if (field.message !== undefined) add(field.message, messageOf(field.message));
  };
  for (const type of protobufTypes().values()) add(type, messageOfKind(type));
  add(apiTypeOf(deleteOptionsSchema)!, messageOf(apiTypeOf(deleteOptionsSchema)!));
  for (const name of specialMessageNames()) add(name, messageOf(name));
  return found;
}

test('every message has the numbers, names and types of Kubernetes', () => {
  const messages = everyMessage();
  assert.ok(messages.size > 300, `${messages.size} messages`);
  assert.deepEqual(
    [...messages].flatMap(([source, message]) => differences(source, message)),
    [],
  );
});

test('every message of Kubernetes in the table is decoded', () => {
  const names = new Set([...everyMessage().keys()].map(nameOf));
  names.add('authorization.v1.ExtraValue');
  assert.deepEqual(
    [...facts.keys()].filter((name) => !names.has(name)),
    [],
  );
});

test('only apiVersion and kind have no number', () => {
  const unnumbered = new Set<string>();
  for (const source of everyMessage().keys()) {
    if (typeof source === 'string') continue;
    for (const [name, field] of Object.entries(source.fields)) if (field.number === undefined) unnumbered.add(name);
  }
  assert.deepEqual([...unnumbered], ['apiVersion', 'kind']);
});

const typeOf = (fields: Parameters<typeof apiType>[2]): ApiType => apiTypeOf(apiType('core.v1.HostAlias', '', fields))!;
const ip = required(1, str(), '');
const hostnames = optional(2, list(str()), '');
const NAME = 'core.v1.HostAlias';

/** HostAlias has `1 ip string; 2 hostnames? string[]`. */
const mistakes: Record<string, { readonly type: ApiType; readonly want: readonly string[] }> = {
  'a correct type': { type: typeOf({ ip, hostnames }), want: [] },
  'a wrong number': {
    type: typeOf({ ip, hostnames: optional(3, list(str()), '') }),
    want: [`${NAME}: 3 hostnames? string[], but Kubernetes has none`, `${NAME}: no field 2 hostnames? string[]`],
  },
  'exchanged numbers': {
    type: typeOf({ ip: required(2, str(), ''), hostnames: optional(1, list(str()), '') }),
    want: [
      `${NAME}: 2 ip string, but Kubernetes has 2 hostnames? string[]`,
      `${NAME}: 1 hostnames? string[], but Kubernetes has 1 ip string`,
    ],
  },
  'a missing field': { type: typeOf({ ip }), want: [`${NAME}: no field 2 hostnames? string[]`] },
  'a field that Kubernetes does not have': {
    type: typeOf({ ip, hostnames, port: optional(3, int32(), '') }),
    want: [`${NAME}: 3 port? int32, but Kubernetes has none`],
  },
  'another type': {
    type: typeOf({ ip: required(1, int64(), ''), hostnames: optional(2, str(), '') }),
    want: [
      `${NAME}: 1 ip int64, but Kubernetes has 1 ip string`,
      `${NAME}: 2 hostnames? string, but Kubernetes has 2 hostnames? string[]`,
    ],
  },
  'another omitempty': {
    type: typeOf({ ip: optional(1, str(), ''), hostnames }),
    want: [`${NAME}: 1 ip? string, but Kubernetes has 1 ip string`],
  },
};

for (const [sentence, { type, want }] of Object.entries(mistakes)) {
  test(`the comparison finds ${sentence}`, () => assert.deepEqual(differences(type, messageOf(type)), want));
}
