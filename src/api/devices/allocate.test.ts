import assert from 'node:assert/strict';
import { test } from 'node:test';
import { allocate, type PlaceKind, type PlaceRequest } from '#api/devices/allocate.ts';

const SEATS: PlaceKind = { noun: 'seat', print: (place) => `seat ${place}` };

const request = (id: string, place?: number): PlaceRequest => ({
  id,
  field: `spec.${id}`,
  choices: [0, 1, 2, 3],
  ...(place !== undefined && { pinned: { place, field: `spec.${id}.place` } }),
});

interface Case {
  requests: PlaceRequest[];
  recorded?: Record<string, number>;
  places?: Record<string, number>;
  reserved?: number[];
  problems?: string[];
}

const cases: Record<string, Case> = {
  'assigns places in the order of the spec': { requests: [request('b'), request('a')], places: { b: 0, a: 1 } },
  'restores recorded places before it assigns new ones': {
    requests: [request('new'), request('old')],
    recorded: { old: 0 },
    places: { new: 1, old: 0 },
  },
  'does not reuse the place of a device that is gone': {
    requests: [request('a'), request('c')],
    recorded: { a: 0, gone: 1 },
    places: { a: 0, c: 2 },
  },
  'reuses the place of a device that is gone if no other is free': {
    requests: [request('a'), request('b'), request('c')],
    recorded: { a: 3, gone: 0, other: 1, third: 2 },
    places: { a: 3, b: 0, c: 1 },
  },
  'prefers the spec to the record': { requests: [request('a', 3)], recorded: { a: 0 }, places: { a: 3 } },
  'assigns the place of a device that is gone to a device that names it': {
    requests: [request('a', 1)],
    recorded: { gone: 1 },
    places: { a: 1 },
  },
  'refuses a record with two devices at one place': {
    requests: [request('b'), request('a')],
    recorded: { a: 0, b: 0 },
    problems: ['spec.b: Invalid value: "seat 0": the record has both a and b at this address'],
  },
  'accepts a place that is recorded twice if one of the two devices is gone': {
    requests: [request('b')],
    recorded: { gone: 0, b: 0 },
    places: { b: 0 },
  },
  'assigns the first choice of a device, even if it is not the lowest place': {
    requests: [{ ...request('cd'), choices: [2, 3, 1, 0] }, request('a'), request('b'), request('c')],
    places: { cd: 2, a: 0, b: 1, c: 3 },
  },
  'restores a recorded place that is not among the choices': {
    requests: [{ ...request('a'), choices: [1] }],
    recorded: { a: 7 },
    places: { a: 7 },
  },
  'does not move a device for the first choice of another one': {
    requests: [{ ...request('new'), choices: [1, 3] }, request('old')],
    recorded: { old: 1 },
    places: { new: 3, old: 1 },
  },
  'does not assign reserved places while others are free': {
    requests: [request('a')],
    reserved: [0, 1],
    places: { a: 2 },
  },
  'refuses two devices that name the same place': {
    requests: [request('a', 1), request('b', 1)],
    problems: ['spec.b.place: Invalid value: "seat 1": is already the address of a'],
  },
  'refuses to move a recorded device for one that names its place': {
    requests: [request('a', 1), request('b')],
    recorded: { b: 1 },
    problems: ['spec.a.place: Invalid value: "seat 1": is the address of b'],
  },
  'refuses a device if no place is free': {
    requests: ['a', 'b', 'c', 'd', 'e'].map((id) => request(id)),
    problems: ['spec.e: Invalid value: "e": no seat is free: a guest has 4'],
  },
};

for (const [name, { requests, recorded = {}, reserved, places, problems = [] }] of Object.entries(cases)) {
  test(name, () => {
    const allocation = allocate(requests, new Map(Object.entries(recorded)), SEATS, reserved);
    assert.deepEqual(
      allocation.problems.map(({ field, message }) => `${field}: ${message}`),
      problems,
    );
    if (places !== undefined) assert.deepEqual(Object.fromEntries(allocation.places), places);
  });
}
