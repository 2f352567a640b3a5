import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { VmiSpec } from '#api/virtual-machine-instance/spec.ts';
import type { VmiStatus } from '#api/virtual-machine-instance/status.ts';
import { describeHeldClaim, findHeldClaims, findRivals, writtenClaimNames } from '#controllers/vmi/claim-holders.ts';
import { decideVmi } from '#controllers/vmi/decide-vmi.ts';
import { aClaim, aPod, aVmi, aWorld, NOW } from '#controllers/vmi/testing/vmi-world.ts';
import { volumeStatusOf } from '#controllers/vmi/volume-status.ts';
import { findCondition } from '#kube/conditions.ts';
import type { PersistentVolumeClaim } from '#kube/core-kinds.ts';
import type { ObjectMeta } from '#kube/meta.ts';

type Disk = NonNullable<NonNullable<VmiSpec['domain']['devices']>['disks']>[number];
type Volume = NonNullable<VmiSpec['volumes']>[number];

const WRITTEN: Volume = { name: 'd', persistentVolumeClaim: { claimName: 'data' } };
const READ: Volume = { name: 'd', persistentVolumeClaim: { claimName: 'data', readOnly: true } };
const BASE: Volume = { name: 'd', ephemeral: { persistentVolumeClaim: { claimName: 'data' } } };

const specOf = (volume: Volume, disk: Partial<Disk> = {}) => ({
  domain: { devices: { disks: [{ name: 'd', disk: {}, ...disk }] } },
  volumes: [volume],
});

interface Case {
  readonly volume?: Volume;
  readonly disk?: Partial<Disk>;
  readonly status?: VmiStatus;
  readonly other?: { volume?: Volume; disk?: Partial<Disk>; status?: VmiStatus; meta?: ObjectMeta };
  readonly claim?: Partial<PersistentVolumeClaim>;
  /** True if the instance starts before the other one. */
  readonly isFirst?: boolean;
  readonly held: boolean;
}

const RUNNING: VmiStatus = { phase: 'Running' };
const blocked = (reason: string): VmiStatus => ({
  phase: 'Pending',
  conditions: [{ type: 'Synchronized', status: 'False', reason }],
});
const plugging = (phase: string): VmiStatus => ({
  ...RUNNING,
  volumeStatus: [{ name: 'd', phase, hotplugVolume: {}, persistentVolumeClaimInfo: { claimName: 'data' } }],
});

const cases: Record<string, Case> = {
  'a guest that runs holds its claim': { held: true },
  'an instance that is being scheduled holds its claim': { other: { status: { phase: 'Scheduling' } }, held: true },
  'a guest that has ended holds nothing': { other: { status: { phase: 'Succeeded' } }, held: false },
  'a reader excludes a writer': { other: { volume: READ }, held: true },
  'a writer excludes a reader': { volume: READ, held: true },
  'a writer excludes an ephemeral disk': { volume: BASE, held: true },
  'readers exclude nobody': { volume: READ, other: { volume: BASE }, held: false },
  'a CD-ROM only reads': { disk: { disk: undefined, cdrom: {} }, other: { volume: READ }, held: false },
  'a write-protected disk only reads': { disk: { disk: { readonly: true } }, other: { volume: READ }, held: false },
  'a disk that is not plugged uses nothing': { other: { disk: { plugged: false } }, held: false },
  'a block device of several nodes may be shared': {
    claim: { spec: { accessModes: ['ReadWriteMany'], volumeMode: 'Block' } },
    held: false,
  },
  'files of several nodes may not be shared': { claim: { spec: { accessModes: ['ReadWriteMany'] } }, held: true },
  'a claim that can only be read may be shared': { claim: { spec: { accessModes: ['ReadOnlyMany'] } }, held: false },
  'of two that are about to start, the second one waits': { other: { status: {} }, held: true },
  'of two that are about to start, the first one does not wait': { other: { status: {} }, isFirst: true, held: false },
  'an earlier one that cannot start holds nothing': { other: { status: blocked('FailedPvcNotFound') }, held: false },
  'an earlier one that is being deleted before its start holds nothing': {
    other: { status: {}, meta: { deletionTimestamp: NOW } },
    held: false,
  },
  'a disk that waits to be plugged in is not held': { other: { status: plugging('Pending') }, held: false },
  'a disk that was plugged in is held': { other: { status: plugging('Ready') }, held: true },
  'a running guest does not wait for one that is about to start': {
    status: RUNNING,
    other: { status: {} },
    held: false,
  },
};

for (const [name, { volume = WRITTEN, disk, status, other = {}, claim, isFirst = false, held }] of Object.entries(
  cases,
)) {
  test(`claims in use: ${name}`, () => {
    const vmi = aVmi({ spec: specOf(volume, disk), ...(status && { status }) });
    const rival = aVmi({
      name: 'web',
      meta: { uid: 'web', ...other.meta },
      spec: specOf(other.volume ?? WRITTEN, other.disk),
      status: other.status ?? RUNNING,
    });
    const users = {
      usersOf: () => [vmi, rival],
      startsBefore: (first: typeof vmi) => (first === vmi) === isFirst,
      writersOf: () => [vmi, rival].filter((one) => writtenClaimNames(one).includes('data')),
    };
    const found = findHeldClaims(vmi, new Map([['data', { claim: aClaim('data', claim) }]]), users);
    assert.deepEqual(
      found.map(({ claimName, holder }) => [claimName, holder.metadata.name]),
      held ? [['data', 'web']] : [],
    );
    const isRival = findRivals(vmi, users).length > 0;
    assert.ok(isRival || !held, 'a change of a holder reaches those that wait for it');
    assert.equal(isRival, findRivals(rival, users).length > 0);
  });
}

const holder = aVmi({ name: 'web', meta: { uid: 'web' }, status: RUNNING });
const owned = aVmi({
  name: 'web',
  meta: {
    uid: 'web',
    ownerReferences: [
      { apiVersion: 'kubevirt.io/v1', kind: 'VirtualMachine', name: 'web', uid: 'u', controller: true },
    ],
  },
});
const IN_USE = 'PersistentVolumeClaim "data" is in use by';

test('the message names the claim, its user and what to do', () => {
  assert.equal(
    describeHeldClaim({ claimName: 'data', holder: owned }),
    `${IN_USE} VirtualMachine "web"; stop it with "virtctl stop web", or use another claim`,
  );
  assert.equal(
    describeHeldClaim({ claimName: 'data', holder }),
    `${IN_USE} VirtualMachineInstance "web"; delete it, or use another claim`,
  );
});

test('an instance whose claim is in use gets no pod, but a condition and one Event', () => {
  const vmi = aVmi({ spec: specOf(WRITTEN) });
  const heldClaims = [{ claimName: 'data', holder: owned }];
  const plan = decideVmi(aWorld({ vmi, heldClaims }));
  assert.deepEqual(plan.changes, []);
  const status = plan.status as VmiStatus;
  const { reason, message } = findCondition(status.conditions, 'Synchronized') ?? {};
  assert.equal(reason, 'ClaimInUse');
  assert.match(
    message ?? '',
    /^Cannot start VirtualMachineInstance "db": PersistentVolumeClaim "data" is in use by Vi/,
  );
  assert.deepEqual(plan.events, [{ type: 'Warning', reason, message }]);
  const next = decideVmi(aWorld({ vmi: { ...vmi, status }, heldClaims }));
  assert.deepEqual(next.events, []);
  assert.equal(decideVmi(aWorld({ vmi: { ...vmi, status } })).changes.length, 1, 'the pod is created later');
});

test('a hotplugged volume reports who uses its claim', () => {
  const hotplugged: Volume = { name: 'd', persistentVolumeClaim: { claimName: 'data', hotpluggable: true } };
  for (const phase of [undefined, 'Failed'] as const) {
    const hotplug = phase === undefined ? {} : { hotplug: [{ device: 'disk-d', phase, message: 'locked' }] };
    const vmi = aVmi({ spec: specOf(hotplugged), status: { ...RUNNING, ...hotplug } });
    const world = aWorld({ vmi, pod: aPod({ nodeName: 'n' }), heldClaims: [{ claimName: 'data', holder: owned }] });
    const [volume] = volumeStatusOf(world);
    assert.deepEqual([volume?.phase, volume?.reason], ['Pending', 'ClaimInUse']);
    assert.match(
      volume?.message ?? '',
      /^Cannot plug in volume "d": PersistentVolumeClaim "data" is in use by Virtual/,
    );
  }
});
