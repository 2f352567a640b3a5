/** Objects as an older version stored them: written past admission, in forms that the API does not accept today. */
import type { Loose } from '#test/support/test-api.ts';
import type { VmPlane } from '#test/support/vm-plane.ts';

const VMS = 'virtualmachines.kubevirt.io';
let storedCount = 0;

const DAY_MS = 24 * 60 * 60 * 1000;

/**
 * Stores the VM past admission. It is a day old unless its metadata says otherwise. An existing VM with the same name
 * is replaced.
 */
export async function storePastAdmission({ server, clock }: VmPlane, vm: Loose): Promise<void> {
  const id = `default/${vm.metadata.name}`;
  const expected = server.store.latest(VMS, id)?.revision ?? 0;
  const creationTimestamp = new Date(clock.now() - DAY_MS).toISOString().replace(/\.\d+Z$/, 'Z');
  const uid = `00000000-0000-4000-8000-${String(++storedCount).padStart(12, '0')}`;
  const metadata = { namespace: 'default', uid, creationTimestamp, generation: 1, ...vm.metadata };
  const encode = (revision: number) =>
    Buffer.from(JSON.stringify({ ...vm, metadata: { ...metadata, resourceVersion: String(revision) } }));
  await server.store.put({ collection: VMS, id, expected, encode });
}

export function withoutFirmwareUuid(vm: Loose): Loose {
  const old = structuredClone(vm);
  const { firmware } = old.spec.template.spec.domain;
  if (firmware !== undefined) {
    delete firmware.uuid;
    delete firmware.serial;
  }
  return old;
}
