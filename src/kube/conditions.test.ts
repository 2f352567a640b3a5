import assert from 'node:assert/strict';
import test from 'node:test';
import { type Condition, findCondition, isTrue, type NextCondition, setCondition } from '#kube/conditions.ts';

const THEN = '2024-01-01T00:00:00Z';
const NOW = '2024-01-02T00:00:00Z';

const ready = (overrides: Partial<Condition> = {}): Condition => ({
  type: 'Ready',
  status: 'True',
  reason: 'Up',
  lastTransitionTime: THEN,
  ...overrides,
});
const other: Condition = { type: 'Paused', status: 'False', lastTransitionTime: THEN };

interface Case {
  before: Condition[] | undefined;
  next: NextCondition;
  want: Condition[];
}

const cases: Record<string, Case> = {
  'adds a condition that is not there': {
    before: undefined,
    next: { type: 'Ready', status: 'True' },
    want: [{ type: 'Ready', status: 'True', lastTransitionTime: NOW }],
  },
  'sets the time when the status changes, and keeps the position': {
    before: [ready(), other],
    next: { type: 'Ready', status: 'False', reason: 'Down' },
    want: [ready({ status: 'False', reason: 'Down', lastTransitionTime: NOW }), other],
  },
  'keeps the time when only reason and message change': {
    before: [other, ready()],
    next: { type: 'Ready', status: 'True', reason: 'StillUp', message: 'ok' },
    want: [other, ready({ reason: 'StillUp', message: 'ok' })],
  },
  'removes a message that is no longer given': {
    before: [ready({ message: 'old' })],
    next: { type: 'Ready', status: 'True', reason: 'Up' },
    want: [ready()],
  },
  'sets the time of a condition that had none': {
    before: [{ type: 'Ready', status: 'True' }],
    next: { type: 'Ready', status: 'True' },
    want: [{ type: 'Ready', status: 'True', lastTransitionTime: NOW }],
  },
};

const plain = (value: unknown): unknown => JSON.parse(JSON.stringify(value));

for (const [sentence, { before, next, want }] of Object.entries(cases)) {
  test(sentence, () => {
    const input = plain(before ?? null);
    const after = setCondition(before, next, NOW);
    assert.deepEqual(plain(after), want);
    assert.deepEqual(plain(before ?? null), input, 'the input is not changed');
    assert.equal(setCondition(after, next, '2030-01-01T00:00:00Z'), after, 'a repeated call changes nothing');
  });
}

test('reads conditions, also from an object without any', () => {
  assert.equal(findCondition([ready()], 'Ready')?.reason, 'Up');
  assert.equal(findCondition(undefined, 'Ready'), undefined);
  assert.equal(isTrue([ready()], 'Ready'), true);
  assert.equal(isTrue([ready({ status: 'Unknown' })], 'Ready'), false);
  assert.equal(isTrue(undefined, 'Ready'), false);
});
