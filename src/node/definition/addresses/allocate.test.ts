import assert from 'node:assert/strict';
import { test } from 'node:test';
import { allocate, type Places, type Want } from '#node/definition/addresses/allocate.ts';

const SEATS: Places = { noun: 'seat', print: (place) => `seat ${place}` };

const want = (id: string, place?: number): Want => ({
  id,
  field: `spec.${id}`,
  choices: [0, 1, 2, 3],
  ...(place !== undefined && { pinned: { place, field: `spec.${id}.place` } }),
});

interface Case {
  wants: Want[];
  recorded?: Record<string, number>;
  places?: Record<string, number>;
  reserved?: number[];
  problems?: string[];
}

const cases: Record<string, Case> = {
  'gives places in the order of the spec': { wants: [want('b'), want('a')], places: { b: 0, a: 1 } },
  'gives back what is recorded before it gives anything new': {
    wants: [want('new'), want('old')],
    recorded: { old: 0 },
    places: { new: 1, old: 0 },
  },
  'leaves the place of a device that is gone alone': {
    wants: [want('a'), want('c')],
    recorded: { a: 0, gone: 1 },
    places: { a: 0, c: 2 },
  },
  'takes the place of a device that is gone when no other is left': {
    wants: [want('a'), want('b'), want('c')],
    recorded: { a: 3, gone: 0, other: 1, third: 2 },
    places: { a: 3, b: 0, c: 1 },
  },
  'does what the spec says, against the record': { wants: [want('a', 3)], recorded: { a: 0 }, places: { a: 3 } },
  'gives the place of a device that is gone to whoever names it': {
    wants: [want('a', 1)],
    recorded: { gone: 1 },
    places: { a: 1 },
  },
  'refuses a record that names a place twice': {
    wants: [want('b'), want('a')],
    recorded: { a: 0, b: 0 },
    problems: ['spec.b: Invalid value: "seat 0": the record has a in the place of b, too'],
  },
  'does not mind a place that is named twice where one of the two is gone': {
    wants: [want('b')],
    recorded: { gone: 0, b: 0 },
    places: { b: 0 },
  },
  'gives what a device likes best, and that is not always the lowest': {
    wants: [{ ...want('cd'), choices: [2, 3, 1, 0] }, want('a'), want('b'), want('c')],
    places: { cd: 2, a: 0, b: 1, c: 3 },
  },
  'gives back a recorded place that it would not choose': {
    wants: [{ ...want('a'), choices: [1] }],
    recorded: { a: 7 },
    places: { a: 7 },
  },
  'moves nobody for what has a favourite place: it takes its next choice': {
    wants: [{ ...want('new'), choices: [1, 3] }, want('old')],
    recorded: { old: 1 },
    places: { new: 3, old: 1 },
  },
  'leaves what is reserved alone while others are free': { wants: [want('a')], reserved: [0, 1], places: { a: 2 } },
  'refuses two devices that name one place': {
    wants: [want('a', 1), want('b', 1)],
    problems: ['spec.b.place: Invalid value: "seat 1": is the place of a, too'],
  },
  'refuses to move a device out of the way of another': {
    wants: [want('a', 1), want('b')],
    recorded: { b: 1 },
    problems: ['spec.a.place: Invalid value: "seat 1": is the place of b'],
  },
  'says when nothing is left': {
    wants: ['a', 'b', 'c', 'd', 'e'].map((id) => want(id)),
    problems: ['spec.e: Invalid value: "e": no seat is left: a guest has 4'],
  },
};

for (const [name, { wants, recorded = {}, reserved, places, problems = [] }] of Object.entries(cases)) {
  test(name, () => {
    const allocation = allocate(wants, new Map(Object.entries(recorded)), SEATS, reserved);
    assert.deepEqual(
      allocation.problems.map(({ field, message }) => `${field}: ${message}`),
      problems,
    );
    if (places !== undefined) assert.deepEqual(Object.fromEntries(allocation.places), places);
  });
}
