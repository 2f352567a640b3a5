/** Deletes and edits identity records in the store, in ways that the API does not allow. */
import assert from 'node:assert/strict';
import { decodeStored } from '#engine/encoding/stored-object.ts';
import type { Loose } from '#test/support/test-api.ts';
import type { VmPlane } from '#test/support/vm-plane.ts';

const RECORDS = 'virtualmachineidentities.identity.selfsame.io';

/** Deletes the record of the VM from the store. Does not settle. */
export async function deleteStoredRecord({ server }: VmPlane, vm: string): Promise<void> {
  const id = `default/${vm}`;
  const last = server.store.latest(RECORDS, id);
  assert.ok(last !== undefined, `there is no record of ${vm}`);
  await server.store.delete({ collection: RECORDS, id, expected: last.revision, encode: () => last.bytes });
}

/** Changes the record of the VM in the store. */
export async function editStoredRecord(
  { server }: VmPlane,
  vm: string,
  change: (record: Loose) => void,
): Promise<void> {
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
