import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as fc from 'fast-check';
import { allocate, type PlaceKind } from '#api/devices/allocate.ts';

const COUNT = 6;
const KIND: PlaceKind = { noun: 'seat', print: String };

const ids = fc.constantFrom('a', 'b', 'c', 'd', 'e', 'f', 'g', 'h');
const requestsArb = fc
  .uniqueArray(ids, { maxLength: COUNT })
  .map((list) => list.map((id) => ({ id, field: id, choices: [0, 1, 2, 3, 4, 5] })));
/** A record without duplicates; some of its devices are gone. */
const recorded = fc
  .tuple(fc.uniqueArray(ids, { maxLength: COUNT }), fc.shuffledSubarray([0, 1, 2, 3, 4, 5], { minLength: COUNT }))
  .map(([names, places]) => new Map(names.map((id, i) => [id, places[i] ?? 0])));

test('recorded devices keep their places, and every device gets a place of its own', () => {
  fc.assert(
    fc.property(requestsArb, recorded, (requests, record) => {
      const { places, problems } = allocate(requests, record, KIND);
      assert.deepEqual(problems, []);
      assert.equal(places.size, requests.length);
      assert.equal(new Set(places.values()).size, requests.length);
      for (const { id } of requests) {
        const before = record.get(id);
        if (before !== undefined) assert.equal(places.get(id), before, `${id} moved`);
      }
    }),
  );
});

test('recorded places do not depend on the order of the spec', () => {
  fc.assert(
    fc.property(requestsArb, recorded, (requests, record) => {
      const complete = new Map([...record, ...allocate(requests, record, KIND).places]);
      const inOrder = allocate(requests, complete, KIND).places;
      const reversed = allocate(requests.toReversed(), complete, KIND).places;
      assert.deepEqual(Object.fromEntries(reversed), Object.fromEntries(inOrder));
    }),
  );
});

test('the place of a device that is gone is reused only if no other is free', () => {
  fc.assert(
    fc.property(requestsArb, recorded, (requests, record) => {
      const { places } = allocate(requests, record, KIND);
      const present = new Set(requests.map(({ id }) => id));
      const gone = new Set([...record].filter(([id]) => !present.has(id)).map(([, place]) => place));
      const taken = new Set(places.values());
      const isLeft = Array.from({ length: COUNT }, (_, place) => place).some((p) => !taken.has(p) && !gone.has(p));
      const reused = [...taken].some((place) => gone.has(place));
      assert.ok(!(isLeft && reused));
    }),
  );
});
