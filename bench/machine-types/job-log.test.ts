import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseSpans } from './job-log.ts';

const at = (ms: number, fields: object) =>
  JSON.stringify({ level: 'info', time: new Date(1_900_000_000_000 + ms).toISOString(), ...fields });

test('the plan ends with its line, the updates with the last VM that is done', () => {
  const log = [
    'not a line of the log',
    at(500, { msg: 'the plan is written', vms: 2 }),
    at(600, { msg: 'updated', state: 'updated' }),
    at(700, { msg: 'done', state: 'done' }),
    at(1500, { msg: 'done', state: 'done' }),
    at(1600, { msg: 'done', done: 2 }),
  ].join('\n');
  assert.deepEqual(parseSpans(log, 1_900_000_000_000), { planSeconds: 0.5, updateSeconds: 1, done: 2 });
});

test('refuses a log without a plan', () => {
  assert.throws(() => parseSpans('', 0), /it has no line about the plan/);
});
