import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ConvertedForm } from '#engine/conversion/converted-form.ts';
import { compileSchema } from '#engine/registry/structural/compile.ts';
import type { Entry } from '#engine/store/store.ts';
import type { KubeObject } from '#kube/meta.ts';
import type { Schema } from '#kube/schema.ts';

const schemas: Record<string, Schema> = {
  v1: spec({ size: { type: 'integer', default: 3 } }),
  v2: spec({ size: { type: 'integer' }, color: { type: 'string', default: 'red' } }),
};

function spec(properties: Record<string, Schema>): Schema {
  return { type: 'object', properties: { spec: { type: 'object', properties } } };
}

const SINCE = 100;
const signal = () => new AbortController().signal;

function form(version: string, storageVersion = 'v1'): ConvertedForm {
  const schemaOf = (name: string) => {
    const schema = schemas[name];
    return schema && compileSchema(schema);
  };
  return new ConvertedForm({ group: 'g.io', version, storageVersion, since: SINCE, schemaOf, webhook: undefined });
}

function entry(version: string, content: object, revision: number): Entry {
  const object = { apiVersion: `g.io/${version}`, kind: 'A', metadata: { name: 'a' }, spec: content };
  return { id: 'a', revision, bytes: Buffer.from(JSON.stringify(object)) } as Entry;
}

const shown = (bytes: Buffer) => JSON.parse(bytes.toString()) as KubeObject;

interface Case {
  readonly version: string;
  readonly stored: Entry;
  readonly want: { readonly apiVersion: string; readonly spec: object } | 'as it is';
}

const cases: Record<string, Case> = {
  'an object newer than the definition is served as stored': {
    version: 'v1',
    stored: entry('v1', { size: 1, old: true }, SINCE + 1),
    want: 'as it is',
  },
  'an older object is pruned and defaulted': {
    version: 'v1',
    stored: entry('v1', { old: true }, SINCE - 1),
    want: { apiVersion: 'g.io/v1', spec: { size: 3 } },
  },
  'an older object that is unchanged by this is served as stored': {
    version: 'v1',
    stored: entry('v1', { size: 1 }, SINCE - 1),
    want: 'as it is',
  },
  'another version gets its apiVersion and the defaults of the stored version': {
    version: 'v2',
    stored: entry('v1', { color: 'blue' }, SINCE - 1),
    want: { apiVersion: 'g.io/v2', spec: { color: 'blue', size: 3 } },
  },
  'a removed version has no defaults': {
    version: 'v1',
    stored: entry('v0', { size: 2, old: true }, SINCE - 1),
    want: { apiVersion: 'g.io/v1', spec: { size: 2 } },
  },
};

test('stored objects in the form of a version', async (t) => {
  for (const [name, { version, stored, want }] of Object.entries(cases)) {
    await t.test(name, () => {
      const bytes = form(version).bytes(stored);
      if (want === 'as it is') assert.equal(bytes, stored.bytes);
      else assert.deepEqual({ apiVersion: shown(bytes).apiVersion, spec: shown(bytes)['spec'] }, want);
    });
  }
});

test('many old objects are converted in batches, few at once', async () => {
  const v1 = form('v1');
  const old = Array.from({ length: 250 }, () => entry('v1', {}, 1));
  assert.equal(v1.prepare(old.slice(0, 5), signal), undefined);
  const preparing = v1.prepare(old, signal);
  assert.ok(preparing instanceof Promise);
  await preparing;
  assert.equal(v1.prepare(old, signal), undefined);
  assert.equal(v1.bytes(old[249]!), v1.bytes(old[249]!));
});

test('concurrent watchers of another version get the same bytes', () => {
  const v2 = form('v2');
  const stored = entry('v1', { size: 1 }, SINCE + 1);
  assert.equal(v2.bytes(stored), v2.bytes(stored));
});

const current: Record<string, { stored: Entry; want: boolean }> = {
  'written since the definition changed': { stored: entry('v2', { any: true }, SINCE + 1), want: true },
  'old, but unchanged by the definition': { stored: entry('v1', { size: 1 }, 1), want: true },
  'with fields that are no longer known': { stored: entry('v1', { size: 1, old: true }, 1), want: false },
  'without a default': { stored: entry('v1', {}, 1), want: false },
  'in another version': { stored: entry('v2', { size: 1 }, 1), want: false },
};

test('isCurrent detects outdated stored objects', async (t) => {
  for (const [name, { stored, want }] of Object.entries(current)) {
    await t.test(name, () => assert.equal(form('v2').isCurrent(stored), want));
  }
});

test('an object is converted to the storage version and keeps its metadata', () => {
  const object = shown(entry('v2', { color: 'blue' }, 1).bytes);
  const stored = form('v2').toStorage(object, signal) as KubeObject;
  assert.deepEqual([stored.apiVersion, stored['spec']], ['g.io/v1', { size: 3 }]);
  assert.equal(stored.metadata, object.metadata);
  assert.deepEqual(object['spec'], { color: 'blue' });
  assert.equal(form('v1').toStorage(object, signal), object);
});
