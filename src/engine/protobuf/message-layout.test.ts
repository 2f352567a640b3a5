import assert from 'node:assert/strict';
import { test } from 'node:test';
import { decodeProtobuf, protobufTypes } from '#engine/protobuf/decode-protobuf.ts';
import { type Message, messageOf, messageOfKind, specialMessageNames } from '#engine/protobuf/message-layout.ts';
import { specialTypes } from '#engine/protobuf/special-types.ts';
import { body } from '#engine/protobuf/testing/wire-writer.ts';
import { builtInResources } from '#engine/registry/kinds/all.ts';
import { apiVersionOf } from '#kube/meta.ts';

test('the fields of a message and of its inlined messages have unique JSON names', () => {
  const namesOf = ({ fields }: Message): string[] =>
    fields.flatMap(({ name, message }) =>
      name === '' && message !== undefined ? namesOf(messageOf(message)) : [name],
    );
  for (const [key, type] of protobufTypes()) {
    const names = namesOf(messageOfKind(type));
    assert.deepEqual([...new Set(names)], names, key);
  }
});

test('every special type is a special message', () => {
  for (const name of specialTypes.keys()) assert.ok(specialMessageNames().includes(name), name);
});

test('every built-in kind can be decoded', () => {
  for (const resource of builtInResources) {
    const apiVersion = apiVersionOf(resource);
    const decoded = decodeProtobuf(body(apiVersion, resource.kind));
    assert.deepEqual({ apiVersion: decoded.apiVersion, kind: decoded.kind }, { apiVersion, kind: resource.kind });
  }
});
