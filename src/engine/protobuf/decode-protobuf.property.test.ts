import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { decodeProtobuf } from '#engine/protobuf/decode-protobuf.ts';
import { kubectlBodies } from '#engine/protobuf/testing/kubectl-bodies.ts';
import { ProtobufError } from '#engine/protobuf/protobuf-error.ts';
import { body, bytes, entry, int, message, text } from '#engine/protobuf/testing/wire-writer.ts';

const recorded = Object.values(kubectlBodies).map(({ base64 }) => Buffer.from(base64, 'base64'));
const anyBytes = (maxLength: number) => fc.uint8Array({ maxLength }).map((array) => Buffer.from(array));

/** Reports whether the bytes are an object. Any exception other than ProtobufError fails the property. */
function decodes(whole: Buffer): boolean {
  try {
    // Also checks that the object is JSON: no cycles, no other types.
    JSON.stringify(decodeProtobuf(whole).object);
    return true;
  } catch (error) {
    if (error instanceof ProtobufError) return false;
    throw error;
  }
}

test('random bytes are rejected with a ProtobufError', () => {
  fc.assert(fc.property(anyBytes(200), (noise) => assert.equal(decodes(noise), false)));
});

test('random bytes as the message of a kind are decoded or rejected', () => {
  const kinds = fc.constantFrom(
    ['v1', 'Pod'],
    ['batch/v1', 'Job'],
    ['apiextensions.k8s.io/v1', 'CustomResourceDefinition'],
  );
  fc.assert(
    fc.property(kinds, anyBytes(200), ([apiVersion = '', kind = ''], noise) => {
      decodes(body(apiVersion, kind, noise));
    }),
    { numRuns: 500 },
  );
});

test('recorded bodies with changed, removed or added bytes are decoded or rejected', () => {
  const mutation = fc.record({
    at: fc.double({ min: 0, max: 1, noNaN: true }),
    remove: fc.nat({ max: 4 }),
    insert: anyBytes(4),
  });
  const mutations = fc.array(mutation, { minLength: 1, maxLength: 4 });
  fc.assert(
    fc.property(fc.constantFrom(...recorded), mutations, (original, edits) => {
      let mutant = original;
      for (const { at, remove, insert } of edits) {
        const start = Math.floor(at * mutant.length);
        mutant = Buffer.concat([mutant.subarray(0, start), insert, mutant.subarray(start + remove)]);
      }
      decodes(mutant);
    }),
    { numRuns: 3000 },
  );
});

test('a recorded body that is truncated within its message is rejected', () => {
  for (const original of recorded) {
    // Only the empty contentEncoding and contentType follow the message, with two bytes each.
    for (let length = 0; length < original.length - 4; length++) {
      assert.equal(decodes(original.subarray(0, length)), false, `${length} of ${original.length} bytes`);
    }
  }
});

test('a config map survives encoding', () => {
  const key = fc.string({ unit: 'grapheme' }).filter((name) => name !== '__proto__');
  const dictionary = <T>(value: fc.Arbitrary<T>) => fc.dictionary(key, value, { noNullPrototype: true });
  fc.assert(
    fc.property(
      dictionary(fc.string({ unit: 'grapheme' })),
      dictionary(anyBytes(20)),
      fc.integer(),
      (data, binary, n) => {
        const { object } = decodeProtobuf(
          body(
            'v1',
            'ConfigMap',
            message(1, int(7, n)),
            ...Object.entries(data).map(([name, value]) => entry(2, name, text(2, value))),
            ...Object.entries(binary).map(([name, value]) => entry(3, name, bytes(2, value))),
          ),
        );
        const base64 = Object.fromEntries(
          Object.entries(binary).map(([name, value]) => [name, value.toString('base64')]),
        );
        assert.deepEqual(object, {
          kind: 'ConfigMap',
          apiVersion: 'v1',
          metadata: n === 0 ? {} : { generation: n },
          ...(Object.keys(data).length === 0 ? {} : { data }),
          ...(Object.keys(binary).length === 0 ? {} : { binaryData: base64 }),
        });
      },
    ),
  );
});
