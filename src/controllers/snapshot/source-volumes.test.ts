import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Volume } from '#api/domain/volume.ts';
import { STATE_VOLUME } from '#api/persistent-state.ts';
import type { VirtualMachine } from '#api/virtual-machine/kind.ts';
import { buildContent, idleVolumesIn } from '#controllers/snapshot/build-content.ts';
import { indicationsOf } from '#controllers/snapshot/indications.ts';
import { includedVolumes, leavesData, obstacleOf, snapshotClassFor } from '#controllers/snapshot/source-volumes.ts';
import {
  aClaim,
  aClass,
  aPersistentVolume,
  aRecord,
  aSnapshot,
  aVm,
  aVmi,
  DELETED,
  ROOT,
  SEED,
} from '#controllers/snapshot/snapshot-world.fixture.ts';
import type { HeldVm, StateView, VolumeView } from '#controllers/snapshot/snapshot-world.ts';
import { isStateBackup } from '#controllers/snapshot/state-backup.ts';
import type { Stored } from '#kube/meta.ts';

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

const stateClaim = aClaim('persistent-state-for-db-x');
const stateVolume = aPersistentVolume('persistent-state-for-db-x');
const STATE: StateView = { claim: stateClaim, persistentVolume: stateVolume, snapshotClass: 'a' };
const UPLOADING = aClaim('persistent-state-for-db-x', 'Bound', { annotations: { 'selfsame.io/upload': 'true' } });

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
  'state in a bound claim is none': [{ state: STATE }, undefined],
  'state that is to be made at the first start is none': [
    { state: { claim: aClaim('persistent-state-for-db-x', 'Pending') } },
    undefined,
  ],
  'state that is just being imported': [
    { state: { ...STATE, claim: UPLOADING } },
    'PersistentVolumeClaim "persistent-state-for-db-x" waits for its content',
  ],
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

const states: Record<
  string,
  [state: StateView | undefined, vm: Stored<VirtualMachine>, included: string[], leaves: boolean]
> = {
  'none where there is none': [undefined, aVm(), [], false],
  'its claim under the name of the VM': [STATE, aVm(), ['persistent-state-for-db'], false],
  'nothing of a claim that nobody has used yet': [
    { claim: aClaim('persistent-state-for-db-x', 'Pending') },
    aVm(),
    [],
    false,
  ],
  'it stays behind where its storage cannot be copied': [{ ...STATE, snapshotClass: undefined }, aVm(), [], true],
  'under a name that no disk can have, where a disk has that of the state': [
    STATE,
    aVm([{ ...SEED, name: 'persistent-state-for-db' }]),
    ['persistent-state-for-this-vm'],
    false,
  ],
};
for (const [sentence, [state, vm, included, leaves]] of Object.entries(states)) {
  test(`what a snapshot holds of the state: ${sentence}`, () => {
    const held: HeldVm = { vm, volumes: [], ...(state && { state }) };
    assert.deepEqual([includedVolumes(held).map(({ name }) => name), leavesData(held)], [included, leaves]);
    const content = buildContent(aSnapshot(), held);
    assert.deepEqual(
      content.spec.volumeBackups?.map((backup) => isStateBackup(content.spec, backup)),
      included.map(() => true),
    );
  });
}

test('what a snapshot holds of the state: the guest that runs has it, unless it was started without', () => {
  const status = {
    volumeStatus: [{ name: STATE_VOLUME, persistentVolumeClaimInfo: { claimName: stateClaim.metadata.name } }],
  };
  const without = aVmi('Running', { status });
  const keeps = { ...without, spec: { domain: { devices: { tpm: { persistent: true } } } } };
  const idleIn = (vmi: HeldVm['vmi']) =>
    idleVolumesIn(buildContent(aSnapshot(), { vm: aVm(), vmi, volumes: [], state: STATE }));
  assert.deepEqual([idleIn(keeps), idleIn(without)], [[], ['persistent-state-for-db']]);
});

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
