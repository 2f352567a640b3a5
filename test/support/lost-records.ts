/** Identity records that are lost as nobody can lose them through the API: by a hand in the store. */
import assert from 'node:assert/strict';
import { decodeStored } from '#engine/codec.ts';
import type { Loose } from '#test/support/test-api.ts';
import type { VmPlane } from '#test/support/vm-plane.ts';

const RECORDS = 'virtualmachineidentities.identity.selfsame.io';

/** Takes the record of the VM out of the store, and leaves things in motion. */
export async function loseRecord({ server }: VmPlane, vm: string): Promise<void> {
  const id = `default/${vm}`;
  const last = server.store.latest(RECORDS, id);
  assert.ok(last !== undefined, `there is no record of ${vm}`);
  await server.store.delete({ collection: RECORDS, id, expected: last.revision, encode: () => last.bytes });
}

/** Changes the record of the VM in the store. */
export async function editRecord({ server }: VmPlane, vm: string, change: (record: Loose) => void): Promise<void> {
  const id = `default/${vm}`;
  const last = server.store.latest(RECORDS, id);
  assert.ok(last !== undefined, `there is no record of ${vm}`);
  const record: Loose = structuredClone(decodeStored(last.bytes));
  change(record);
  const encode = (revision: number) => {
    record.metadata.resourceVersion = String(revision);
    return Buffer.from(JSON.stringify(record));
  };
  await server.store.put({ collection: RECORDS, id, expected: last.revision, encode });
}
