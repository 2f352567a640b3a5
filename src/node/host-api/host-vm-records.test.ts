import assert from 'node:assert/strict';
import { mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { HostVmRecords } from '#node/host-api/host-vm-records.ts';

const [A, B, C] = ['a', 'b', 'c'].map((letter) => `${letter.repeat(8)}-0000-4000-8000-000000000000`) as [
  string,
  string,
  string,
];
const record = (vmId: string) => ({ vmId, vmName: 'x', sent: { ['__proto__']: { a: 1 } }, entries: [] });

test('the next agent reads the records of existing guests and removes all others', async (t) => {
  const dir = mkdtempSync(join(tmpdir(), 'host-vm-records-'));
  t.after(() => rmSync(dir, { recursive: true }));
  const records = await HostVmRecords.open(dir, () => true);
  for (const id of [A, B]) await records.save(record(id));
  assert.equal(statSync(join(dir, `${A}.json`)).mode & 0o777, 0o600);
  // An unfinished write, a damaged record, and a foreign file.
  for (const file of [`${A}.json.new`, `${C}.json`, 'x.json']) writeFileSync(join(dir, file), '{');

  const next = await HostVmRecords.open(dir, (id) => id !== B);
  assert.deepEqual(next.get(A), record(A));
  assert.deepEqual([next.get(B), next.get(C)], [undefined, undefined]);
  assert.deepEqual(readdirSync(dir), [`${A}.json`]);
  await next.remove(A);
  await next.remove(A);
  assert.deepEqual([next.get(A), readdirSync(dir)], [undefined, []]);
});
