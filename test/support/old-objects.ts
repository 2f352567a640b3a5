/** Objects as an older version left them in the store: past admission, as nobody could write them today. */
import type { Loose } from '#test/support/test-api.ts';
import type { VmPlane } from '#test/support/vm-plane.ts';

const VMS = 'virtualmachines.kubevirt.io';
let made = 0;

const DAY_MS = 24 * 60 * 60 * 1000;

/** Stores the VM past admission, as one that is a day old unless it says otherwise; one of the name is replaced, and keeps its uid. */
export async function storeAsIs({ server, clock }: VmPlane, vm: Loose): Promise<void> {
  const id = `default/${vm.metadata.name}`;
  const expected = server.store.latest(VMS, id)?.revision ?? 0;
  const creationTimestamp = new Date(clock.now() - DAY_MS).toISOString().replace(/\.\d+Z$/, 'Z');
  const uid = `00000000-0000-4000-8000-${String(++made).padStart(12, '0')}`;
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
