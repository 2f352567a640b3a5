import assert from 'node:assert/strict';
import { test } from 'node:test';
import { NEW_LAYOUT_ANNOTATION, STARTED_ANNOTATION } from '#api/names.ts';
import { startedMark } from '#api/virtual-machine-identity/restored-vm.ts';
import { prepareVm } from '#controllers/vm/start/start.ts';
import type { VmWorld } from '#controllers/vm/vm-world.ts';
import { aRecord, aVm, aWorld } from '#controllers/vm/testing/vm-world.ts';

const OWN = startedMark(aVm().metadata);
const ORIGINAL = startedMark({ ...aVm().metadata, uid: 'original' });
const aRestoredVm = (annotations: Record<string, string> = {}) =>
  aVm({ metadata: { annotations: { [STARTED_ANNOTATION]: ORIGINAL, ...annotations } } });
const unmarked = aVm({ metadata: { annotations: { [STARTED_ANNOTATION]: '' } } });
const snapshot = {
  name: 'nightly',
  takenAt: '2026-01-01T10:00:00Z',
  identity: { spec: {}, status: { devices: [{ id: 'nic-default', type: 'interface', device: 'virtio' }] } },
};

const cases: Record<string, { world: Partial<VmWorld>; want: string | undefined }> = {
  'the first start marks the VM': { world: { vm: unmarked, identity: undefined }, want: OWN },
  'a VM with its own mark is not written again': { world: {}, want: undefined },
  'a restored VM keeps the mark of its original until it has a record': {
    world: { vm: aRestoredVm(), identity: undefined, lostRecord: {} },
    want: undefined,
  },
  'a restored VM keeps it until the record is rebuilt': {
    world: { vm: aRestoredVm(), identity: aRecord(), lostRecord: { snapshot } },
    want: undefined,
  },
  'a restored VM gets its own mark once its record is complete': { world: { vm: aRestoredVm() }, want: OWN },
  'a restored VM gets its own mark once a new layout is accepted and its record exists': {
    world: { vm: aRestoredVm({ [NEW_LAYOUT_ANNOTATION]: 'original' }), identity: aRecord(), lostRecord: {} },
    want: OWN,
  },
};

for (const [sentence, { world, want }] of Object.entries(cases)) {
  test(sentence, () => {
    const [change] = prepareVm(aWorld(world));
    const body = change?.do === 'patch' ? (change.patch.body as Partial<VmWorld['vm']>) : undefined;
    assert.equal(body?.metadata?.annotations?.[STARTED_ANNOTATION], want);
  });
}
