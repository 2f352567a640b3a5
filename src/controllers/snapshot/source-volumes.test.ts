import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { VmiVolume } from '#api/domain/volume.ts';
import { STATE_VOLUME } from '#api/storage/persistent-state.ts';
import type { VirtualMachine } from '#api/virtual-machine/kind.ts';
import { buildVmSnapshotContent, idleVolumesOfContent } from '#controllers/snapshot/build-content.ts';
import { indicationsOfInstance } from '#controllers/snapshot/indications.ts';
import { includedVolumes, leavesOutData, checkHeldVm, snapshotClassFor } from '#controllers/snapshot/source-volumes.ts';
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
} from '#controllers/snapshot/testing/snapshot-world.ts';
import type { HeldVm, StateClaim, SourceVolume } from '#controllers/snapshot/snapshot-world.ts';
import { isStateBackup } from '#controllers/shared/persistent-state/state-backup.ts';
import type { Stored } from '#kube/meta.ts';

const classCases: Record<string, [classes: Parameters<typeof snapshotClassFor>[1], want: string | undefined]> = {
  'none without a class': [[], undefined],
  'none with a class of another driver': [[aClass('a', { driver: 'other' })], undefined],
  'the first by name': [[aClass('b'), aClass('a')], 'a'],
  'the default rather than the first': [[aClass('a'), aClass('b', { isDefault: true })], 'b'],
  'not the default of another driver': [[aClass('a'), aClass('b', { driver: 'x', isDefault: true })], 'a'],
};

for (const [sentence, [classes, want]] of Object.entries(classCases)) {
  test(`class of a volume: ${sentence}`, () => {
    assert.equal(snapshotClassFor(aPersistentVolume('root-claim'), classes), want);
  });
}

test('class of a volume: none for a volume without a driver', () => {
  const { csi: _, ...spec } = aPersistentVolume('root-claim').spec;
  assert.equal(snapshotClassFor({ ...aPersistentVolume('root-claim'), spec }, [aClass('a')]), undefined);
});

const persistentVolume = aPersistentVolume('root-claim');
const COPYABLE: SourceVolume = { volume: ROOT, claim: aClaim('root-claim'), persistentVolume, snapshotClass: 'a' };
const NOT_COPYABLE: SourceVolume = { volume: ROOT, claim: aClaim('root-claim'), persistentVolume };

const stateClaim = aClaim('persistent-state-for-db-x');
const stateVolume = aPersistentVolume('persistent-state-for-db-x');
const STATE: StateClaim = { claim: stateClaim, persistentVolume: stateVolume, snapshotClass: 'a' };
const UPLOADING = aClaim('persistent-state-for-db-x', 'Bound', { annotations: { 'selfsame.io/upload': 'true' } });

const checks: Record<string, [held: Partial<HeldVm>, want: string | undefined]> = {
  'accepts a stopped VM with bound claims': [{ volumes: [COPYABLE] }, undefined],
  'accepts a VM without volumes': [{}, undefined],
  'accepts a volume without a claim': [{ volumes: [{ volume: SEED }] }, undefined],
  'refuses a claim that does not exist': [
    { volumes: [{ volume: ROOT }] },
    'PersistentVolumeClaim "root-claim" does not exist',
  ],
  'refuses a claim that is not bound': [
    { volumes: [{ volume: ROOT, claim: aClaim('root-claim', 'Pending') }] },
    'PersistentVolumeClaim "root-claim" is not bound',
  ],
  'refuses a claim whose volume is not in the cache': [
    { volumes: [{ volume: ROOT, claim: aClaim('root-claim') }] },
    'PersistentVolumeClaim "root-claim" is not bound',
  ],
  'accepts a claim that cannot be copied': [{ volumes: [NOT_COPYABLE] }, undefined],
  'accepts a running instance': [{ vmi: aVmi('Running') }, undefined],
  'accepts a guest whose devices are all in the record': [
    { vmi: aVmi('Running', { status: { deviceHash: 'h2' } }), identity: aRecord({}, { deviceHash: 'h2' }) },
    undefined,
  ],
  'refuses a guest whose devices are not all in the record': [
    { vmi: aVmi('Running', { status: { deviceHash: 'h2' } }), identity: aRecord({}, { deviceHash: 'h1' }) },
    'The identity record does not have all devices of the guest yet',
  ],
  'refuses a guest without a record': [
    { vmi: aVmi('Running', { status: { deviceHash: 'h2' } }) },
    'The identity record does not have all devices of the guest yet',
  ],
  'accepts an ended guest without a record': [{ vmi: aVmi('Failed', { status: { deviceHash: 'h2' } }) }, undefined],
  'accepts an instance that has ended': [{ vmi: aVmi('Failed') }, undefined],
  'refuses an instance that is starting': [
    { vmi: aVmi('Scheduled') },
    'The VirtualMachineInstance is Scheduled, not yet Running',
  ],
  'refuses an instance that is stopping': [
    { vmi: aVmi('Running', { metadata: DELETED }) },
    'The VirtualMachineInstance is stopping',
  ],
  'accepts state in a bound claim': [{ state: STATE }, undefined],
  'accepts a state claim that is empty until the first start': [
    { state: { claim: aClaim('persistent-state-for-db-x', 'Pending') } },
    undefined,
  ],
  'refuses state that is being imported': [
    { state: { ...STATE, claim: UPLOADING } },
    'PersistentVolumeClaim "persistent-state-for-db-x" waits for its content',
  ],
  'refuses an instance that the VM does not own': [
    { vmi: aVmi('Running', { metadata: { ownerReferences: [] } }) },
    'A VirtualMachineInstance of this name does not belong to the VirtualMachine',
  ],
};

for (const [sentence, [held, want]] of Object.entries(checks)) {
  test(`check of the VM: ${sentence}`, () => {
    assert.equal(checkHeldVm({ vm: aVm(), volumes: [], ...held }), want);
  });
}

const hostDisk: VmiVolume = { name: 'host', hostDisk: { path: '/disk', type: 'Disk' } };
const ephemeral: VmiVolume = { name: 'live', ephemeral: { persistentVolumeClaim: { claimName: 'base' } } };
const contents: Record<string, [volumes: SourceVolume[], included: string[], leaves: boolean]> = {
  'includes a claim that can be copied': [[COPYABLE], ['root'], false],
  'leaves out the data of a claim that cannot be copied': [[NOT_COPYABLE], [], true],
  'leaves out the data of a disk of the host': [[COPYABLE, { volume: hostDisk }], ['root'], true],
  'does not count volumes that are new at each start as data': [[{ volume: SEED }, { volume: ephemeral }], [], false],
};

for (const [sentence, [volumes, included, leaves]] of Object.entries(contents)) {
  test(`volumes of a snapshot: ${sentence}`, () => {
    const held = { vm: aVm(), volumes };
    assert.deepEqual([includedVolumes(held).map(({ name }) => name), leavesOutData(held)], [included, leaves]);
  });
}

const states: Record<
  string,
  [state: StateClaim | undefined, vm: Stored<VirtualMachine>, included: string[], leaves: boolean]
> = {
  'none without a claim': [undefined, aVm(), [], false],
  'its claim, named after the VM': [STATE, aVm(), ['persistent-state-for-db'], false],
  'not a claim that was never used': [{ claim: aClaim('persistent-state-for-db-x', 'Pending') }, aVm(), [], false],
  'left out if its storage cannot be copied': [{ ...STATE, snapshotClass: undefined }, aVm(), [], true],
  'its claim, with a name that no disk can have if a disk has the usual name': [
    STATE,
    aVm([{ ...SEED, name: 'persistent-state-for-db' }]),
    ['persistent-state-for-this-vm'],
    false,
  ],
};
for (const [sentence, [state, vm, included, leaves]] of Object.entries(states)) {
  test(`state in a snapshot: ${sentence}`, () => {
    const held: HeldVm = { vm, volumes: [], ...(state && { state }) };
    assert.deepEqual([includedVolumes(held).map(({ name }) => name), leavesOutData(held)], [included, leaves]);
    const content = buildVmSnapshotContent(aSnapshot(), held);
    assert.deepEqual(
      content.spec.volumeBackups?.map((backup) => isStateBackup(content.spec, backup)),
      included.map(() => true),
    );
  });
}

test('state in a snapshot: idle only if the running guest was started without it', () => {
  const status = {
    volumeStatus: [{ name: STATE_VOLUME, persistentVolumeClaimInfo: { claimName: stateClaim.metadata.name } }],
  };
  const without = aVmi('Running', { status });
  const keeps = { ...without, spec: { domain: { devices: { tpm: { persistent: true } } } } };
  const idleIn = (vmi: HeldVm['vmi']) =>
    idleVolumesOfContent(buildVmSnapshotContent(aSnapshot(), { vm: aVm(), vmi, volumes: [], state: STATE }));
  assert.deepEqual([idleIn(keeps), idleIn(without)], [[], ['persistent-state-for-db']]);
});

const indicationCases: Record<string, [conditions: string[], want: string[]]> = {
  'a guest without an agent': [[], ['Online', 'NoGuestAgent']],
  'a guest with an agent': [['AgentConnected'], ['Online', 'GuestAgent']],
  'a paused guest, whose agent cannot respond': [
    ['AgentConnected', 'Paused'],
    ['Online', 'NoGuestAgent', 'Paused'],
  ],
};

for (const [sentence, [types, want]] of Object.entries(indicationCases)) {
  test(`indications: ${sentence}`, () => {
    const conditions = types.map((type) => ({ type, status: 'True' as const }));
    assert.deepEqual(indicationsOfInstance(aVmi('Running', { status: { conditions } })), want);
  });
}
