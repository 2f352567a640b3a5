import assert from 'node:assert/strict';
import { test } from 'node:test';
import { convertedObjects, InvalidConversion, type ConversionRequest } from '#engine/conversion/conversion-review.ts';
import type { KubeObject } from '#kube/meta.ts';

const original: KubeObject = {
  apiVersion: 'g.io/v1',
  kind: 'A',
  metadata: { name: 'a', uid: 'u', finalizers: ['f'], labels: { old: 'not a valid value!' } },
};
const request: ConversionRequest = { uid: 'q', version: 'v1', desiredApiVersion: 'g.io/v2', objects: [original] };

function convert(metadata: unknown): KubeObject {
  const object = { apiVersion: 'g.io/v2', kind: 'A', metadata };
  const response = { uid: 'q', result: { status: 'Success' }, convertedObjects: [object] };
  const answer = { apiVersion: 'apiextensions.k8s.io/v1', kind: 'ConversionReview', response };
  return convertedObjects(answer, request)[0]!;
}

const named = { name: 'a', uid: 'u' };

test('labels and annotations come from the response, other metadata stay, and values that were invalid before are allowed', () => {
  const { metadata } = convert({ ...named, labels: original.metadata.labels, annotations: { a: 'b' }, finalizers: [] });
  assert.deepEqual(metadata, { ...original.metadata, annotations: { a: 'b' } });
});

const refused: Record<string, { metadata: unknown; want: string }> = {
  'labels that are not a map': {
    metadata: { ...named, labels: ['a'] },
    want: 'returned invalid metadata: invalid metadata.labels of type []interface {} in converted object',
  },
  'a value that is not a string': {
    metadata: { ...named, annotations: { a: 1 } },
    want: 'returned invalid metadata: metadata.annotations[a] must be a string, but is int64 in converted object',
  },
  'a null value': {
    metadata: { ...named, labels: { a: null } },
    want: 'returned invalid metadata: metadata.labels[a] must be a string, but is <nil> in converted object',
  },
  'an invalid label': {
    metadata: { ...named, labels: { 'a b': 'c' } },
    want: 'returned invalid metadata: metadata.labels: Invalid value: "a b": name part must consist of',
  },
  'an invalid annotation': {
    metadata: { ...named, annotations: { 'a b': 'c' } },
    want: 'returned invalid metadata: metadata.annotation: Invalid value: "a b": name part must consist of',
  },
  'no metadata': { metadata: undefined, want: 'returned invalid object: must have the same name: a != ' },
  'another uid': {
    metadata: { name: 'a', uid: 'other' },
    want: 'returned invalid object: must have the same UID: u != other',
  },
};

test('invalid responses are rejected with Kubernetes messages', async (t) => {
  for (const [name, { metadata, want }] of Object.entries(refused)) {
    await t.test(name, () => {
      assert.throws(
        () => convert(metadata),
        (error) => error instanceof InvalidConversion && error.message.startsWith(want),
      );
    });
  }
});
