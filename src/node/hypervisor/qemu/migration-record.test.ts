import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { SourceStep, TargetStep } from '../migration.ts';
import { migrationView, stateWith, whyAbsent, whyBusy, type MigrationRecord } from './migration-record.ts';
import { runState } from './run-state.ts';

const base = { uid: 'u', peer: 'other', disks: [] };
const source = (step: SourceStep, goesOn = true): MigrationRecord => ({ ...base, role: 'source', step, goesOn });
const target = (step: TargetStep, goesOn = true): MigrationRecord => ({ ...base, role: 'target', step, goesOn });

const PAUSED = { state: 'paused' };
const STILL = { state: 'paused', why: 'migration' };
const RUNNING = { state: 'running' };
const INCOMING = { state: 'incoming' };

/** What QEMU says, and what follows from it. */
const states: Record<string, [MigrationRecord | undefined, string, object]> = {
  'a guest that has nothing to do with any runs': [undefined, 'running', RUNNING],
  'a guest that is sent runs': [source('sending'), 'running', RUNNING],
  'a guest that is sent stands still at last': [source('sending'), 'finish-migrate', STILL],
  'a guest that was sent stands still': [source('sending'), 'postmigrate', STILL],
  'a paused guest that is sent is paused by its owner': [source('sending', false), 'finish-migrate', PAUSED],
  'a paused guest that was taken back is paused by its owner': [source('aborted', false), 'postmigrate', PAUSED],
  'a guest that was taken back and is paused later is paused by its owner': [source('aborted'), 'paused', PAUSED],
  'a guest whose disk is full while it is sent': [source('sending'), 'io-error', { state: 'paused', why: 'ioError' }],
  'a guest that ends while it is sent has ended': [source('sending'), 'shutdown', { state: 'ended', how: 'shutdown' }],
  'a guest that has gone is not here, whatever QEMU says': [source('migrated'), 'running', STILL],
  'the end of a QEMU whose guest has gone is not the guest’s': [source('left'), 'internal-error', STILL],
  'a guest that is awaited is not here': [target('waiting'), 'inmigrate', INCOMING],
  'a guest that has come, and waits': [target('stored'), 'paused', INCOMING],
  'a guest that has come, and never ran before': [target('stored'), 'prelaunch', INCOMING],
  'a guest that was committed is not here before it runs': [target('committed'), 'paused', INCOMING],
  'a guest that was committed runs': [target('committed'), 'running', RUNNING],
  'a guest that has arrived and is paused': [target('arrived'), 'paused', PAUSED],
};

for (const [sentence, [record, status, want]] of Object.entries(states)) {
  test(sentence, () => assert.deepEqual(stateWith(record, runState({ status })), want));
}

const free: Record<string, [MigrationRecord | undefined, busy: boolean, absent: boolean]> = {
  'without a migration': [undefined, false, false],
  'while it is sent': [source('sending'), true, false],
  'taken back': [source('aborted'), false, false],
  gone: [source('migrated'), true, true],
  left: [source('left'), true, true],
  awaited: [target('waiting'), true, true],
  stored: [target('stored'), true, true],
  committed: [target('committed'), true, true],
  arrived: [target('arrived'), false, false],
};

for (const [moment, [record, busy, absent]] of Object.entries(free)) {
  test(`a guest ${moment} is ${busy ? '' : 'not '}busy, and ${absent ? 'not ' : ''}here`, () => {
    assert.deepEqual([whyBusy(record) !== undefined, whyAbsent(record) !== undefined], [busy, absent]);
  });
}

test('only what everybody may know is told', () => {
  assert.deepEqual(migrationView(target('stored')), { uid: 'u', peer: 'other', role: 'target', step: 'stored' });
  assert.deepEqual(migrationView(source('sending')), { uid: 'u', peer: 'other', role: 'source', step: 'sending' });
});
