import assert from 'node:assert/strict';
import { test } from 'node:test';
import { collectParams } from '#engine/admission/policies/params.ts';
import { encodeJson } from '#engine/encoding/media-types.ts';
import { builtInResources } from '#engine/registry/kinds/all.ts';
import { Registry } from '#engine/registry/registry.ts';
import type { Entry, Store } from '#engine/store/store.ts';

const registry = new Registry(builtInResources);
const KIND = { apiVersion: 'v1', kind: 'ConfigMap' };
const SELECTED = { selector: { matchLabels: { pick: 'yes' } } };

interface Read {
  name: string;
}

/** An entry that records each access to its bytes. */
function anEntry(name: string, pick: string, reads: Read[]): Entry {
  const object = { ...KIND, metadata: { name, namespace: 'golden', labels: { pick } } };
  const bytes = encodeJson(object);
  return {
    collection: 'configmaps',
    id: `golden/${name}`,
    revision: 1,
    get bytes() {
      reads.push({ name });
      return bytes;
    },
  };
}

function aStore(entries: readonly Entry[]): Store {
  return { list: () => ({ entries, revision: 1, remaining: 0 }) } as unknown as Store;
}

const names = (found: ReturnType<typeof collectParams>) =>
  'error' in found ? found.error : found.map((one) => one?.metadata.name);

test('objects that do not match are parsed once for their labels, and only some that match stay parsed', () => {
  const reads: Read[] = [];
  const store = aStore([
    ...Array.from({ length: 300 }, (_, i) => anEntry(`a${i}`, 'yes', reads)),
    ...Array.from({ length: 300 }, (_, i) => anEntry(`x${i}`, 'no', reads)),
  ]);
  const collect = () => collectParams(KIND, SELECTED, 'golden', { store, registry });
  assert.equal((collect() as readonly unknown[]).length, 300);
  reads.length = 0;
  assert.equal((collect() as readonly unknown[]).length, 300);
  assert.ok(reads.length > 0);
  assert.deepEqual(
    reads.filter(({ name }) => !name.startsWith('a')),
    [],
  );
});

test('a selector that matches everything', () => {
  const store = aStore([anEntry('a', 'yes', []), anEntry('b', 'no', [])]);
  assert.deepEqual(names(collectParams(KIND, { selector: {} }, 'golden', { store, registry })), ['a', 'b']);
});

test('a selector that matches too many objects is an error', () => {
  const store = aStore(Array.from({ length: 1001 }, (_, i) => anEntry(`a${i}`, 'yes', [])));
  assert.match(String(names(collectParams(KIND, SELECTED, 'golden', { store, registry }))), /^more than 1000 objects/);
});
