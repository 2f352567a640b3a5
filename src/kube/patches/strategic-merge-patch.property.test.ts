import assert from 'node:assert/strict';
import test from 'node:test';
import * as fc from 'fast-check';
import type { Schema } from '#kube/schema.ts';
import { applyStrategicMergePatch } from '#kube/patches/strategic-merge-patch.ts';

const schema: Schema = {
  type: 'object',
  properties: {
    items: {
      type: 'array',
      'x-kubernetes-patch-strategy': 'merge',
      'x-kubernetes-patch-merge-key': 'name',
      items: { type: 'object' },
    },
    tags: { type: 'array', 'x-kubernetes-patch-strategy': 'merge', items: { type: 'string' } },
  },
};

interface Item {
  name: string;
  v?: number | null;
  $patch?: string;
}
interface Doc {
  items: Item[];
  tags: string[];
}

const name = fc.constantFrom('a', 'b', 'c', 'd', 'e', 'f');
const names = fc.uniqueArray(name, { maxLength: 6 });
const items = names.chain((list) => fc.tuple(...list.map((it) => fc.nat(9).map((v): Item => ({ name: it, v })))));
const doc: fc.Arbitrary<Doc> = fc.record({ items, tags: names });

/** A patch like those of kubectl: some items changed or deleted, possibly with the order of all known items. */
const patch = fc
  .record({
    known: names,
    changes: fc.array(fc.constantFrom('keep', 'set', 'null', 'delete'), { maxLength: 6 }),
    tags: names,
    ordered: fc.boolean(),
  })
  .map(({ known, changes, tags, ordered }) => {
    const change = known.map((it, i) => ({ it, how: changes[i] ?? 'keep' }));
    const listed = change.flatMap(({ it, how }): Item[] => {
      if (how === 'set') return [{ name: it, v: 100 }];
      if (how === 'null') return [{ name: it, v: null }];
      return how === 'delete' ? [{ name: it, $patch: 'delete' }] : [];
    });
    const order = change.filter(({ how }) => how !== 'delete').map(({ it }) => ({ name: it }));
    return {
      items: listed,
      tags,
      ...(ordered ? { '$setElementOrder/items': order, '$setElementOrder/tags': tags } : {}),
    };
  });

const apply = (from: Doc, with_: object) => applyStrategicMergePatch(from, with_, schema) as Doc;
const namesOf = (list: readonly Item[]) => list.map((item) => item.name);
const only = (list: readonly string[], wanted: readonly string[]) => list.filter((it) => wanted.includes(it));

test('a second application changes nothing, and the inputs stay unchanged', () => {
  fc.assert(
    fc.property(doc, patch, (from, change) => {
      const before = JSON.stringify([from, change]);
      const once = apply(from, change);
      assert.deepEqual(apply(once, change), once);
      assert.equal(JSON.stringify([from, change]), before);
    }),
    { numRuns: 500 },
  );
});

test('a merged list has each key once: existing and set items without deleted ones', () => {
  fc.assert(
    fc.property(doc, patch, (from, change) => {
      const result = apply(from, change);
      const deleted = new Set(change.items.filter((item) => item.$patch === 'delete').map((item) => item.name));
      const set = change.items.filter((item) => item.$patch === undefined).map((item) => item.name);
      const want = new Set([...namesOf(from.items), ...set].filter((it) => !deleted.has(it)));
      assert.deepEqual(namesOf(result.items).sort(), [...want].sort());
      assert.deepEqual(result.tags.toSorted(), [...new Set([...from.tags, ...change.tags])].sort());
    }),
    { numRuns: 500 },
  );
});

test('items of the patch come in its order, items of the server keep theirs', () => {
  fc.assert(
    fc.property(doc, patch, (from, change) => {
      const result = apply(from, change);
      const order: readonly Item[] = change['$setElementOrder/items'] ?? change.items.filter((item) => !item.$patch);
      const found = namesOf(result.items);
      const wanted = namesOf(order);
      assert.deepEqual(only(found, wanted), only(wanted, found));
      const server = namesOf(from.items).filter((it) => !wanted.includes(it));
      assert.deepEqual(
        found.filter((it) => !wanted.includes(it)),
        only(server, found),
      );
      assert.deepEqual(only(result.tags, change.tags), change.tags);
    }),
    { numRuns: 500 },
  );
});

test('values are those of the patch if it sets them, and those of the server otherwise', () => {
  fc.assert(
    fc.property(doc, patch, (from, change) => {
      for (const item of apply(from, change).items) {
        const set = change.items.find((it) => it.name === item.name && it.$patch === undefined);
        const old = from.items.find((it) => it.name === item.name);
        assert.equal(item.v, set === undefined ? old?.v : (set.v ?? undefined));
      }
    }),
  );
});
