import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { SourceStep, TargetStep } from '#node/hypervisor/migration.ts';
import {
  migrationView,
  combineStates,
  accessRefusal,
  changeRefusal,
} from '#node/hypervisor/qemu/migration/migration-record.ts';
import type { MigrationRecord } from '#node/hypervisor/qemu/record/domain-record.ts';
import { parseRunState } from '#node/hypervisor/qemu/monitor/run-state.ts';

const base = { uid: 'u', peer: 'other', disks: [] };
const source = (step: SourceStep, goesOn = true): MigrationRecord => ({ ...base, role: 'source', step, goesOn });
const target = (step: TargetStep, goesOn = true): MigrationRecord => ({ ...base, role: 'target', step, goesOn });

const PAUSED = { state: 'paused' };
const STILL = { state: 'paused', why: 'migration' };
const RUNNING = { state: 'running' };
const INCOMING = { state: 'incoming' };

/** The record, QEMU's status, and the resulting state. */
const states: Record<string, [MigrationRecord | undefined, string, object]> = {
  'a guest without a migration runs': [undefined, 'running', RUNNING],
  'a guest that is being sent runs': [source('sending'), 'running', RUNNING],
  'a guest is paused for the switchover': [source('sending'), 'finish-migrate', STILL],
  'a guest that was sent is paused by the migration': [source('sending'), 'postmigrate', STILL],
  'a paused guest that is being sent is paused by the user': [source('sending', false), 'finish-migrate', PAUSED],
  'a paused guest after an abort is paused by the user': [source('aborted', false), 'postmigrate', PAUSED],
  'a guest that is paused after an abort is paused by the user': [source('aborted'), 'paused', PAUSED],
  'a guest whose disk is full while it is being sent is paused by the error': [
    source('sending'),
    'io-error',
    { state: 'paused', why: 'ioError' },
  ],
  'a guest that ends while it is being sent has ended': [
    source('sending'),
    'shutdown',
    { state: 'ended', how: 'shutdown' },
  ],
  'a guest that has migrated is paused, whatever QEMU reports': [source('migrated'), 'running', STILL],
  'the end of QEMU is not the end of a guest that has migrated': [source('left'), 'internal-error', STILL],
  'a guest that has not arrived is incoming': [target('waiting'), 'inmigrate', INCOMING],
  'a stored guest is incoming': [target('stored'), 'paused', INCOMING],
  'a stored guest that never ran is incoming': [target('stored'), 'prelaunch', INCOMING],
  'a committed guest is incoming until it runs': [target('committed'), 'paused', INCOMING],
  'a committed guest runs': [target('committed'), 'running', RUNNING],
  'a guest that has arrived can be paused': [target('arrived'), 'paused', PAUSED],
};

for (const [sentence, [record, status, want]] of Object.entries(states)) {
  test(sentence, () => assert.deepEqual(combineStates(record, parseRunState({ status })), want));
}

const free: Record<string, [MigrationRecord | undefined, busy: boolean, absent: boolean]> = {
  'without a migration': [undefined, false, false],
  'that is being sent': [source('sending'), true, false],
  'after an abort': [source('aborted'), false, false],
  'that has migrated': [source('migrated'), true, true],
  'that has left': [source('left'), true, true],
  'that is expected': [target('waiting'), true, true],
  'that is stored': [target('stored'), true, true],
  'that is committed': [target('committed'), true, true],
  'that has arrived': [target('arrived'), false, false],
};

for (const [moment, [record, busy, absent]] of Object.entries(free)) {
  test(`a guest ${moment} can${busy ? 'not' : ''} be changed, and is ${absent ? 'absent' : 'present'}`, () => {
    assert.deepEqual([changeRefusal(record) !== undefined, accessRefusal(record) !== undefined], [busy, absent]);
  });
}

test('the view contains only the public part', () => {
  assert.deepEqual(migrationView(target('stored')), { uid: 'u', peer: 'other', role: 'target', step: 'stored' });
  assert.deepEqual(migrationView(source('sending')), { uid: 'u', peer: 'other', role: 'source', step: 'sending' });
});
