import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Volume } from '#api/domain/volume.ts';
import { indicationsOf } from '#controllers/snapshot/indications.ts';
import { includedVolumes, leavesData, obstacleOf, snapshotClassFor } from '#controllers/snapshot/source-volumes.ts';
import {
  aClaim,
  aClass,
  aPersistentVolume,
  aRecord,
  aVm,
  aVmi,
  DELETED,
  ROOT,
  SEED,
} from '#controllers/snapshot/snapshot-world.fixture.ts';
import type { HeldVm, VolumeView } from '#controllers/snapshot/snapshot-world.ts';

const classCases: Record<string, [classes: Parameters<typeof snapshotClassFor>[1], want: string | undefined]> = {
  'no class, no copy': [[], undefined],
  'a class of another driver does not count': [[aClass('a', { driver: 'other' })], undefined],
  'the first by name': [[aClass('b'), aClass('a')], 'a'],
  'the default before the first': [[aClass('a'), aClass('b', { isDefault: true })], 'b'],
  "another driver's default does not count": [[aClass('a'), aClass('b', { driver: 'x', isDefault: true })], 'a'],
};

for (const [sentence, [classes, want]] of Object.entries(classCases)) {
  test(`class of a volume: ${sentence}`, () => {
    assert.equal(snapshotClassFor(aPersistentVolume('root-claim'), classes), want);
  });
}

test('class of a volume: a volume without a driver has none', () => {
  const { csi: _, ...spec } = aPersistentVolume('root-claim').spec;
  assert.equal(snapshotClassFor({ ...aPersistentVolume('root-claim'), spec }, [aClass('a')]), undefined);
});

const persistentVolume = aPersistentVolume('root-claim');
const WHOLE: VolumeView = { volume: ROOT, claim: aClaim('root-claim'), persistentVolume, snapshotClass: 'a' };
const BARE: VolumeView = { volume: ROOT, claim: aClaim('root-claim'), persistentVolume };

const obstacles: Record<string, [held: Partial<HeldVm>, want: string | undefined]> = {
  'a stopped VM with bound claims has none': [{ volumes: [WHOLE] }, undefined],
  'no volumes at all is fine': [{}, undefined],
  'a volume without a claim is fine': [{ volumes: [{ volume: SEED }] }, undefined],
  'a claim that is not there': [{ volumes: [{ volume: ROOT }] }, 'PersistentVolumeClaim "root-claim" does not exist'],
  'a claim that is not bound': [
    { volumes: [{ volume: ROOT, claim: aClaim('root-claim', 'Pending') }] },
    'PersistentVolumeClaim "root-claim" is not bound',
  ],
  'a claim whose volume is not seen': [
    { volumes: [{ volume: ROOT, claim: aClaim('root-claim') }] },
    'PersistentVolumeClaim "root-claim" is not bound',
  ],
  'a claim that cannot be copied is none': [{ volumes: [BARE] }, undefined],
  'an instance that runs is none': [{ vmi: aVmi('Running') }, undefined],
  'a guest whose devices are on record is none': [
    { vmi: aVmi('Running', { status: { deviceHash: 'h2' } }), identity: aRecord({}, { deviceHash: 'h2' }) },
    undefined,
  ],
  'a guest whose devices are not all on record': [
    { vmi: aVmi('Running', { status: { deviceHash: 'h2' } }), identity: aRecord({}, { deviceHash: 'h1' }) },
    'The identity record does not have all devices of the guest yet',
  ],
  'a guest without a record': [
    { vmi: aVmi('Running', { status: { deviceHash: 'h2' } }) },
    'The identity record does not have all devices of the guest yet',
  ],
  'an ended guest, whatever is on record, is none': [
    { vmi: aVmi('Failed', { status: { deviceHash: 'h2' } }) },
    undefined,
  ],
  'an instance that has ended is none': [{ vmi: aVmi('Failed') }, undefined],
  'an instance that starts': [{ vmi: aVmi('Scheduled') }, 'The VirtualMachineInstance is Scheduled, not yet Running'],
  'an instance that stops': [{ vmi: aVmi('Running', { metadata: DELETED }) }, 'The VirtualMachineInstance is stopping'],
  "somebody else's instance": [
    { vmi: aVmi('Running', { metadata: { ownerReferences: [] } }) },
    'A VirtualMachineInstance of this name belongs to somebody else',
  ],
};

for (const [sentence, [held, want]] of Object.entries(obstacles)) {
  test(`what is in the way: ${sentence}`, () => {
    assert.equal(obstacleOf({ vm: aVm(), volumes: [], ...held }), want);
  });
}

const hostDisk: Volume = { name: 'host', hostDisk: { path: '/disk', type: 'Disk' } };
const ephemeral: Volume = { name: 'live', ephemeral: { persistentVolumeClaim: { claimName: 'base' } } };
const contents: Record<string, [volumes: VolumeView[], included: string[], leaves: boolean]> = {
  'a claim that can be copied': [[WHOLE], ['root'], false],
  'a claim that cannot is data that stays behind': [[BARE], [], true],
  'a disk of the host is data that stays behind': [[WHOLE, { volume: hostDisk }], ['root'], true],
  'what is made anew at each start is no data': [[{ volume: SEED }, { volume: ephemeral }], [], false],
};

for (const [sentence, [volumes, included, leaves]] of Object.entries(contents)) {
  test(`what a snapshot holds: ${sentence}`, () => {
    const held = { vm: aVm(), volumes };
    assert.deepEqual([includedVolumes(held).map(({ name }) => name), leavesData(held)], [included, leaves]);
  });
}

const indicationCases: Record<string, [conditions: string[], want: string[]]> = {
  'a guest without an agent': [[], ['Online', 'NoGuestAgent']],
  'a guest with one': [['AgentConnected'], ['Online', 'GuestAgent']],
  'a paused guest answers nobody': [
    ['AgentConnected', 'Paused'],
    ['Online', 'NoGuestAgent', 'Paused'],
  ],
};

for (const [sentence, [types, want]] of Object.entries(indicationCases)) {
  test(`indications: ${sentence}`, () => {
    const conditions = types.map((type) => ({ type, status: 'True' as const }));
    assert.deepEqual(indicationsOf(aVmi('Running', { status: { conditions } })), want);
  });
}
