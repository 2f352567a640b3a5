/** Checks the history of an identity record against the record, and summarises it. */
import assert from 'node:assert/strict';
import { buildIdentityState, replayChanges, type IdentityState } from '#api/identity/identity-changes.ts';
import { summarizeIdentity } from '#api/identity/identity-table.ts';
import { MAX_HISTORY } from '#api/virtual-machine-identity/kind.ts';
import type { Loose } from '#test/support/test-api.ts';
import type { VmPlane } from '#test/support/vm-plane.ts';

/**
 * Asserts that the history accounts for the whole record: replayed from an empty state it yields the record, every
 * entry has a time and a cause, and "unchanged since" is the time of the last entry.
 */
export function assertHistory(vm: Loose, record: Loose): void {
  const { history = [], recorded } = record.status ?? {};
  assert.ok(history.length > 0 && history.length < MAX_HISTORY, `${history.length} entries`);
  assert.deepEqual(recorded, record.spec, 'the history accounts for the spec');
  let state: IdentityState = new Map();
  for (const { at, what, cause, changes } of history) {
    assert.ok(at && what && cause, JSON.stringify({ at, what, cause }));
    for (const change of changes) {
      const before = state;
      state = replayChanges(state, [change]);
      assert.notDeepEqual(toPlain(state), toPlain(before), `${change.field} changes something`);
    }
  }
  assert.deepEqual(
    toPlain(state),
    toPlain(buildIdentityState(record.spec, record.status)),
    'the replay yields the record',
  );
  const { unchangedSince, lastChange } = summarizeIdentity(vm, record);
  assert.deepEqual([unchangedSince, lastChange], [history.at(-1).at, history.at(-1).what]);
}

const toPlain = (state: IdentityState): unknown => JSON.parse(JSON.stringify(Object.fromEntries(state)));

/** Checks the history of a VM and returns `field: cause, by` for each change. */
export async function historyOf(plane: VmPlane, name: string): Promise<string[]> {
  const record = await plane.get('VirtualMachineIdentity', name);
  assertHistory(await plane.get('VirtualMachine', name), record);
  return record.status.history.flatMap(({ cause, by, changes }: Loose) => {
    const visible = changes.filter(({ field }: Loose) => !/^devices\.rp\d/.test(field));
    const author = [cause.replace(/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/, 'UID'), ...(by ? [by] : [])].join(', ');
    return visible.length === 0 ? [`nothing: ${author}`] : visible.map(({ field }: Loose) => `${field}: ${author}`);
  });
}
