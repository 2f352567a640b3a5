/** Sets, lists by key, and atomic values: what each manager owns of them and what its next configuration removes. */
import assert from 'node:assert/strict';
import { after, before, beforeEach, test } from 'node:test';
import type { Loose } from '#test/support/test-api.ts';
import { GADGET, gadget, owners, startApplyScene, type ApplyScene } from '#test/scenarios/apply-scene.ts';

let api: ApplyScene;
before(async () => void (api = await startApplyScene()));
after(() => api.stop());
beforeEach(() => api.call('DELETE', GADGET));

/** Steps in order: [manager, spec], [manager, spec, 'force'], or [manager, merge patch of the spec, 'merge']. */
type Step = readonly [string, Loose, ('force' | 'merge')?];

interface Case {
  readonly steps: readonly Step[];
  /** The final spec, without the default. */
  readonly spec: Loose;
  readonly owners: Record<string, string[]>;
}

const cases: Record<string, Case> = {
  'items of a set are merged, each with its owner': {
    steps: [
      ['alice', { set: ['a', 'b'] }],
      ['bob', { set: ['b', 'c'] }],
    ],
    spec: { set: ['a', 'b', 'c'] },
    owners: {
      'alice Apply': ['.spec.set[="a"]', '.spec.set[="b"]'],
      'bob Apply': ['.spec.set[="b"]', '.spec.set[="c"]'],
    },
  },
  'an item of a set is removed with its last owner': {
    steps: [
      ['alice', { set: ['a', 'b', 'c'] }],
      ['bob', { set: ['b'] }],
      ['alice', { set: ['c'] }],
    ],
    spec: { set: ['b', 'c'] },
    owners: { 'alice Apply': ['.spec.set[="c"]'], 'bob Apply': ['.spec.set[="b"]'] },
  },
  'items by key are merged field by field': {
    steps: [
      ['alice', { parts: [{ name: 'a', value: '1' }] }],
      [
        'bob',
        {
          parts: [
            { name: 'a', more: '2' },
            { name: 'b', value: '3' },
          ],
        },
      ],
    ],
    spec: {
      parts: [
        { name: 'a', value: '1', more: '2' },
        { name: 'b', value: '3' },
      ],
    },
    owners: {
      'alice Apply': ['.spec.parts[name="a"]', '.spec.parts[name="a"].name', '.spec.parts[name="a"].value'],
      'bob Apply': [
        '.spec.parts[name="a"]',
        '.spec.parts[name="b"]',
        '.spec.parts[name="a"].more',
        '.spec.parts[name="a"].name',
        '.spec.parts[name="b"].name',
        '.spec.parts[name="b"].value',
      ],
    },
  },
  'an item that two managers share keeps the fields of the remaining one': {
    steps: [
      ['alice', { parts: [{ name: 'a', value: '1' }, { name: 'b' }] }],
      ['bob', { parts: [{ name: 'a', more: '2' }] }],
      ['alice', { parts: [] }],
    ],
    spec: { parts: [{ name: 'a', more: '2' }] },
    owners: { 'bob Apply': ['.spec.parts[name="a"]', '.spec.parts[name="a"].more', '.spec.parts[name="a"].name'] },
  },
  'a field that an update added to an item is removed with the item, which only its applier owned': {
    steps: [
      ['alice', { color: 'red', parts: [{ name: 'a', value: '1' }] }],
      ['carol', { parts: [{ name: 'a', value: '1', more: '2' }] }, 'merge'],
      ['alice', { color: 'red' }],
    ],
    spec: { color: 'red' },
    owners: { 'alice Apply': ['.spec.color'] },
  },
  'an empty list and map that are applied stay, whatever they contained': {
    steps: [
      ['alice', { parts: [{ name: 'a' }], set: ['a'], options: { a: '1' } }],
      ['alice', { parts: [], set: [], options: {} }],
      ['alice', { parts: [], set: [], options: {} }],
    ],
    spec: { parts: [], set: [], options: {} },
    owners: { 'alice Apply': ['.spec.options'] },
  },
  'keys of a free-form map have separate owners': {
    steps: [
      ['alice', { options: { a: '1', b: '2' } }],
      ['bob', { options: { c: '3' } }],
      ['alice', { options: { b: '2' } }],
    ],
    spec: { options: { b: '2', c: '3' } },
    owners: { 'alice Apply': ['.spec.options.b'], 'bob Apply': ['.spec.options.c'] },
  },
  'preserved unknown fields are owned one by one, their lists as a whole': {
    steps: [['alice', { free: { a: { b: 1 }, list: [{ c: 2 }] } }]],
    spec: { free: { a: { b: 1 }, list: [{ c: 2 }] } },
    owners: { 'alice Apply': ['.spec.free.a', '.spec.free.list', '.spec.free.a.b'] },
  },
  'an atomic list is replaced and owned as a whole': {
    steps: [
      ['alice', { atomic: ['a', 'b'] }],
      ['bob', { atomic: ['c'] }, 'force'],
    ],
    spec: { atomic: ['c'] },
    owners: { 'bob Apply': ['.spec.atomic'] },
  },
  'an atomic map is replaced and owned as a whole': {
    steps: [
      ['alice', { whole: { a: '1' }, color: 'red' }],
      ['bob', { whole: { b: '2' } }, 'force'],
    ],
    spec: { whole: { b: '2' }, color: 'red' },
    owners: { 'alice Apply': ['.spec.color'], 'bob Apply': ['.spec.whole'] },
  },
  'an atomic value is removed as a whole': {
    steps: [
      ['alice', { atomic: ['a'], whole: { a: '1' }, color: 'red' }],
      ['alice', { color: 'red' }],
    ],
    spec: { color: 'red' },
    owners: { 'alice Apply': ['.spec.color'] },
  },
  'an update of one field of an item takes ownership of that field only': {
    steps: [
      ['alice', { parts: [{ name: 'a', value: '1', more: '2' }] }],
      ['carol', { parts: [{ name: 'a', value: '9', more: '2' }] }, 'merge'],
    ],
    spec: { parts: [{ name: 'a', value: '9', more: '2' }] },
    owners: {
      'alice Apply': ['.spec.parts[name="a"]', '.spec.parts[name="a"].more', '.spec.parts[name="a"].name'],
      'carol Update': ['.spec.parts[name="a"].value'],
    },
  },
  'an update that removes an item removes it from all owners': {
    steps: [
      ['alice', { set: ['a', 'b'], parts: [{ name: 'a' }] }],
      ['carol', { set: ['b'], parts: null }, 'merge'],
    ],
    spec: { set: ['b'] },
    owners: { 'alice Apply': ['.spec.set[="b"]'] },
  },
};

for (const [what, { steps, spec, owners: wanted }] of Object.entries(cases)) {
  test(what, async () => {
    let object: Loose;
    for (const [manager, said, how] of steps) {
      object =
        how === 'merge'
          ? await api.merge(manager, GADGET, { spec: said })
          : await api.applyOk(manager, GADGET, gadget(said), how === 'force' ? 'force=true' : '');
    }
    const { mode: _, ...left } = object.spec;
    assert.deepEqual(left, spec);
    assert.deepEqual(owners(object), wanted);
  });
}

const conflicts: Record<string, { first: Loose; second: Loose; fields: readonly string[] }> = {
  'an existing item of a set': { first: { set: ['a'] }, second: { set: ['a', 'b'] }, fields: [] },
  'another field of an item': {
    first: { parts: [{ name: 'a', value: '1' }] },
    second: { parts: [{ name: 'a', more: '1' }] },
    fields: [],
  },
  'the same field of an item': {
    first: { parts: [{ name: 'a', value: '1' }] },
    second: { parts: [{ name: 'a', value: '2' }] },
    fields: ['.spec.parts[name="a"].value'],
  },
  'another atomic list': { first: { atomic: ['a'] }, second: { atomic: ['a', 'b'] }, fields: ['.spec.atomic'] },
  'another atomic map': { first: { whole: { a: '1' } }, second: { whole: { b: '1' } }, fields: ['.spec.whole'] },
  'another key of a free-form map': { first: { options: { a: '1' } }, second: { options: { b: '1' } }, fields: [] },
};

for (const [what, { first, second, fields }] of Object.entries(conflicts)) {
  test(`${what}: ${fields.length === 0 ? 'no conflict' : 'a conflict'}`, async () => {
    await api.applyOk('alice', GADGET, gadget(first));
    const { body } = await api.apply('bob', GADGET, gadget(second));
    assert.deepEqual(
      (body.details?.causes ?? []).map((cause: Loose) => cause.field),
      fields,
    );
  });
}

const unfit: Record<string, { spec: Loose; message: string }> = {
  'a duplicate in a set': { spec: { set: ['a', 'a'] }, message: '.spec.set: duplicate entries for key [="a"]' },
  'a duplicate in a list by key': {
    spec: { parts: [{ name: 'a' }, { name: 'a' }] },
    message: '.spec.parts: duplicate entries for key [name="a"]',
  },
  'an item without its key': {
    spec: { parts: [{ value: '1' }] },
    message: `.spec.parts: element 0: associative list with keys has an element that omits key field "name" (and doesn't have default value)`,
  },
  'a map that is a list': { spec: { options: [] }, message: '.spec.options: expected map, got &{[]}' },
};

for (const [what, { spec, message }] of Object.entries(unfit)) {
  test(`${what} is refused`, async () => {
    const { status, body } = await api.apply('alice', GADGET, gadget(spec));
    assert.equal(status, 400);
    assert.equal(body.message, `failed to create typed patch object (/a; golden.local/v1, Kind=Gadget): ${message}`);
  });
}
