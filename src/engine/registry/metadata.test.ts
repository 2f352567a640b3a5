import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { validateMetadata, validateMetadataUpdate } from '#engine/registry/metadata.ts';
import type { FieldError } from '#kube/field-error.ts';
import type { KubeObject, ObjectMeta } from '#kube/meta.ts';

const anObject = (metadata: ObjectMeta): KubeObject => ({
  apiVersion: 'golden.local/v1',
  kind: 'Gadget',
  metadata: { name: 'one', namespace: 'golden', ...metadata },
});

const shown = (errors: readonly FieldError[]) => errors.map(({ field, message }) => `${field}: ${message}`);

const owner = { apiVersion: 'v1', kind: 'Pod', name: 'a', uid: '1' };

interface Case {
  metadata: ObjectMeta;
  namespaced?: boolean;
  /** The beginning of each expected error; names.ts tests the rest of the texts. */
  want: string[];
}

const cases: Record<string, Case> = {
  'accepts valid metadata': {
    metadata: {
      labels: { 'app.kubernetes.io/name': 'x', a: '' },
      annotations: { 'Upper.Case/OK': 'anything at all' },
      ownerReferences: [
        { ...owner, controller: true },
        { ...owner, uid: '2', apiVersion: 'apps/v1' },
      ],
      finalizers: ['example.com/cleanup'],
      generateName: 'gen-',
    },
    want: [],
  },
  'requires a name': {
    metadata: { name: '' },
    want: ['metadata.name: Required value: name or generateName is required'],
  },
  'validates the name': {
    metadata: { name: 'Bad_Name' },
    want: ['metadata.name: Invalid value: "Bad_Name": a lowercase RFC 1123 subdomain'],
  },
  'validates the name prefix': {
    metadata: { generateName: 'Bad-' },
    want: ['metadata.generateName: Invalid value: "Bad-": '],
  },
  'requires a namespace': { metadata: { namespace: '' }, want: ['metadata.namespace: Required value'] },
  'rejects namespace for a cluster-wide kind': {
    metadata: {},
    namespaced: false,
    want: ['metadata.namespace: Forbidden: not allowed on this type'],
  },
  'validates labels': {
    metadata: { labels: { 'a b': 'x', ok: 'not valid!' } },
    want: [
      'metadata.labels: Invalid value: "a b": name part must',
      'metadata.labels: Invalid value: "not valid!": a valid label must',
    ],
  },
  'validates annotation keys': {
    metadata: { annotations: { '/x': '' } },
    want: ['metadata.annotations: Invalid value: "/x": prefix part must be non-empty'],
  },
  'limits the size of annotations': {
    metadata: { annotations: { a: 'é'.repeat(131_072) } },
    want: ['metadata.annotations: Too long: may not be more than 262144 bytes'],
  },
  'requires all fields of owner references': {
    metadata: { ownerReferences: [{ ...owner, apiVersion: 'a/b/c', uid: '', name: '' }] },
    want: [
      'metadata.ownerReferences[0].name: Required value: must not be empty',
      'metadata.ownerReferences[0].uid: Required value: must not be empty',
      'metadata.ownerReferences[0].apiVersion: Invalid value: "a/b/c": must be <group>/<version> or <version>',
    ],
  },
  'rejects a second controller': {
    metadata: {
      ownerReferences: [
        { ...owner, controller: true },
        { ...owner, name: 'b', controller: true },
      ],
    },
    want: [
      `metadata.ownerReferences: Invalid value: ${JSON.stringify([
        { ...owner, controller: true },
        { ...owner, name: 'b', controller: true },
      ])}: Only one reference can have Controller set to true. Found "true" in references for Pod/a and Pod/b`,
    ],
  },
  'rejects an Event as owner': {
    metadata: { ownerReferences: [{ ...owner, kind: 'Event' }] },
    want: [
      `metadata.ownerReferences[0]: Invalid value: ${JSON.stringify({ ...owner, kind: 'Event' })}: /v1, Kind=Event is disallowed from being an owner`,
    ],
  },
  'requires finalizers to be qualified names': {
    metadata: { finalizers: ['not a name'] },
    want: ['metadata.finalizers: Invalid value: "not a name": name part must'],
  },
  'rejects two deletion finalizers': {
    metadata: { finalizers: ['orphan', 'foregroundDeletion'] },
    want: [
      'metadata.finalizers: Invalid value: ["orphan","foregroundDeletion"]: finalizer orphan and foregroundDeletion cannot be both set',
    ],
  },
  'rejects a negative generation': {
    metadata: { generation: -1 },
    want: ['metadata.generation: Invalid value: -1: must be greater than or equal to 0'],
  },
  'treats null as absent': {
    metadata: { labels: null, annotations: null, ownerReferences: null, finalizers: null } as unknown as ObjectMeta,
    want: [],
  },
};

describe('validateMetadata', () => {
  for (const [name, { metadata, namespaced = true, want }] of Object.entries(cases)) {
    it(name, () => {
      const got = shown(validateMetadata(anObject(metadata), { namespaced, nameRule: 'subdomain' }));
      assert.equal(got.length, want.length, got.join('\n'));
      for (const [i, text] of want.entries()) assert.ok(got[i]?.startsWith(text), got[i]);
    });
  }
});

const stored: ObjectMeta = { uid: '1', creationTimestamp: '2026-01-01T00:00:00Z', generation: 3, finalizers: ['a/b'] };
const deleting: ObjectMeta = { ...stored, deletionTimestamp: '2026-01-02T00:00:00Z', deletionGracePeriodSeconds: 30 };

const updates: Record<string, { old: ObjectMeta; metadata: ObjectMeta; want: string[] }> = {
  'allows changes of labels and finalizers': {
    old: stored,
    metadata: { ...stored, labels: { a: 'b' }, finalizers: ['c/d'] },
    want: [],
  },
  'accepts the same time in another notation': {
    old: stored,
    metadata: { ...stored, creationTimestamp: '2026-01-01T01:00:00+01:00' },
    want: [],
  },
  'rejects changes of name, namespace and uid': {
    old: stored,
    metadata: { ...stored, uid: '2', name: 'two', namespace: 'other' },
    want: [
      'metadata.name: Invalid value: "two": field is immutable',
      'metadata.namespace: Invalid value: "other": field is immutable',
      'metadata.uid: Invalid value: "2": field is immutable',
    ],
  },
  'rejects changes of the creation time': {
    old: stored,
    metadata: { ...stored, creationTimestamp: '2020-01-01T00:00:00Z' },
    want: ['metadata.creationTimestamp: Invalid value: "2020-01-01T00:00:00Z": field is immutable'],
  },
  'rejects undoing a deletion': {
    old: deleting,
    metadata: stored,
    want: [
      'metadata.deletionTimestamp: Invalid value: "null": field is immutable',
      'metadata.deletionGracePeriodSeconds: Invalid value: "null": field is immutable',
    ],
  },
  'rejects new finalizers during deletion': {
    old: deleting,
    metadata: { ...deleting, finalizers: ['a/b', 'z/y', 'c/d'] },
    want: [
      'metadata.finalizers: Forbidden: no new finalizers can be added if the object is being deleted, found new finalizers []string{"c/d", "z/y"}',
    ],
  },
  'rejects a lower generation': {
    old: stored,
    metadata: { ...stored, generation: 2 },
    want: ['metadata.generation: Invalid value: 2: must not be decremented'],
  },
};

describe('validateMetadataUpdate', () => {
  for (const [name, { old, metadata, want }] of Object.entries(updates)) {
    it(name, () => {
      assert.deepEqual(shown(validateMetadataUpdate(anObject(metadata), anObject(old))), want);
    });
  }
});
