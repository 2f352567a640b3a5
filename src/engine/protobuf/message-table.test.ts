import assert from 'node:assert/strict';
import { test } from 'node:test';
import { decodeProtobuf, protobufKinds } from '#engine/protobuf/decode-protobuf.ts';
import { messageNamed, messageNames } from '#engine/protobuf/message-table.ts';
import { specialTypes } from '#engine/protobuf/special-types.ts';
import { body } from '#engine/protobuf/testing/wire-writer.ts';
import { builtInResources } from '#engine/registry/kinds/all.ts';
import { apiVersionOf } from '#kube/meta.ts';

test('every table compiles and references only existing messages', () => {
  const names = messageNames();
  assert.ok(names.length > 300, `${names.length} messages`);
  for (const name of names) {
    for (const field of messageNamed(name).fields) {
      if (field.scalar === undefined) assert.ok(names.includes(field.message), `${name}.${field.name}`);
    }
  }
});

test('the fields of a message and of its inlined messages have unique JSON names', () => {
  for (const name of messageNames()) {
    if (specialTypes.has(name)) continue;
    const jsonNames = jsonNamesOf(name);
    assert.deepEqual([...new Set(jsonNames)], jsonNames, name);
  }
});

test('every special type has a table', () => {
  for (const name of specialTypes.keys()) assert.ok(messageNames().includes(name), name);
});

test('every table is reachable from a kind', () => {
  const reached = new Set(['Unknown', 'TypeMeta']);
  const reach = (name: string): void => {
    if (name === '' || reached.has(name)) return;
    reached.add(name);
    for (const field of messageNamed(name).fields) reach(field.message);
  };
  const kinds = Object.values(protobufKinds).flatMap((text) => text.split(' '));
  for (const kind of [...kinds, 'DeleteOptions']) reach(kind.split(':').at(-1)!);
  assert.deepEqual(
    messageNames().filter((name) => !reached.has(name)),
    [],
  );
});

test('every built-in kind has a table', () => {
  for (const resource of builtInResources) {
    const apiVersion = apiVersionOf(resource);
    const decoded = decodeProtobuf(body(apiVersion, resource.kind));
    assert.deepEqual({ apiVersion: decoded.apiVersion, kind: decoded.kind }, { apiVersion, kind: resource.kind });
  }
});

function jsonNamesOf(message: string): string[] {
  return messageNamed(message).fields.flatMap((field) =>
    field.name === '' ? jsonNamesOf(field.message) : [field.name],
  );
}
