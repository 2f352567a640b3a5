import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as fc from 'fast-check';
import { allocate, type Places } from '#node/definition/addresses/allocate.ts';

const COUNT = 6;
const KIND: Places = { noun: 'seat', print: String };

const ids = fc.constantFrom('a', 'b', 'c', 'd', 'e', 'f', 'g', 'h');
const wanted = fc
  .uniqueArray(ids, { maxLength: COUNT })
  .map((list) => list.map((id) => ({ id, field: id, choices: [0, 1, 2, 3, 4, 5] })));
/** A record in which nothing is named twice, some of it gone. */
const recorded = fc
  .tuple(fc.uniqueArray(ids, { maxLength: COUNT }), fc.shuffledSubarray([0, 1, 2, 3, 4, 5], { minLength: COUNT }))
  .map(([names, places]) => new Map(names.map((id, i) => [id, places[i] ?? 0])));

test('whatever is recorded keeps its place, everybody gets one, and nobody shares', () => {
  fc.assert(
    fc.property(wanted, recorded, (wants, record) => {
      const { places, problems } = allocate(wants, record, KIND);
      assert.deepEqual(problems, []);
      assert.equal(places.size, wants.length);
      assert.equal(new Set(places.values()).size, wants.length);
      for (const { id } of wants) {
        const before = record.get(id);
        if (before !== undefined) assert.equal(places.get(id), before, `${id} moved`);
      }
    }),
  );
});

test('what is recorded does not depend on the order of the spec', () => {
  fc.assert(
    fc.property(wanted, recorded, (wants, record) => {
      const complete = new Map([...record, ...allocate(wants, record, KIND).places]);
      const there = allocate(wants, complete, KIND).places;
      const back = allocate(wants.toReversed(), complete, KIND).places;
      assert.deepEqual(Object.fromEntries(back), Object.fromEntries(there));
    }),
  );
});

test('a place of a device that is gone is taken only when no other is left', () => {
  fc.assert(
    fc.property(wanted, recorded, (wants, record) => {
      const { places } = allocate(wants, record, KIND);
      const present = new Set(wants.map(({ id }) => id));
      const gone = new Set([...record].filter(([id]) => !present.has(id)).map(([, place]) => place));
      const taken = new Set(places.values());
      const isLeft = Array.from({ length: COUNT }, (_, place) => place).some((p) => !taken.has(p) && !gone.has(p));
      const reused = [...taken].some((place) => gone.has(place));
      assert.ok(!(isLeft && reused));
    }),
  );
});
