import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Disk } from '#api/domain/disk.ts';
import type { VmiVolume } from '#api/domain/volume.ts';
import { LOCAL_DRIVER } from '#api/names.ts';
import type { VmiPhase, VmiStatus } from '#api/virtual-machine-instance/status.ts';
import { decideVmi } from '#controllers/vmi/decide-vmi.ts';
import { aClaim, aPod, aVmi, aVolume, aWorld, NOW } from '#controllers/vmi/testing/vmi-world.ts';
import type { ClaimView } from '#controllers/shared/launcher/claim-views.ts';
import { findCondition, type Condition } from '#kube/conditions.ts';

const BOUND = { spec: { volumeName: 'pv' }, status: { phase: 'Bound' as const } };
const local = (): ClaimView => {
  const volume = aVolume('pv', { 'selfsame.io/volume-node': 'node-1' });
  const csi = { driver: LOCAL_DRIVER, volumeHandle: 'pv' };
  return { claim: aClaim('disk', BOUND), volume: { ...volume, spec: { ...volume.spec, csi } } };
};
const CLAIM: VmiVolume = { name: 'd', persistentVolumeClaim: { claimName: 'disk' } };

interface Case {
  readonly volume?: VmiVolume;
  readonly disk?: Partial<Disk>;
  readonly claim?: ClaimView;
  readonly phase?: VmiPhase;
  readonly reported?: Condition;
  /** The status; and the message, if it stays. */
  readonly want: readonly [status?: string, message?: string];
}

const reported: Condition = { type: 'LiveMigratable', status: 'True', lastTransitionTime: NOW };
const stays = (why: string) => ['False', `cannot migrate VMI: volume d: ${why}`] as const;

const cases: Record<string, Case> = {
  'a guest without disks can be migrated': { want: ['True'] },
  'a guest with a local disk can be migrated with the disk': { volume: CLAIM, claim: local(), want: ['True'] },
  'a guest with an ephemeral disk can be migrated': {
    volume: { name: 'd', emptyDisk: { capacity: '1Gi' } },
    want: ['True'],
  },
  'a guest with a host disk cannot be migrated': {
    volume: { name: 'd', hostDisk: { path: '/x', type: 'Disk' } },
    want: stays('a hostDisk is a file of its node'),
  },
  'a guest that reads a local disk cannot be migrated': {
    volume: CLAIM,
    claim: local(),
    disk: { cdrom: {} },
    want: stays('it is read-only and on one node only'),
  },
  'a third-party volume that one node can use at a time prevents a migration': {
    volume: CLAIM,
    claim: { claim: aClaim('disk', BOUND), volume: aVolume('pv') },
    want: stays('its volume pv cannot be used by two nodes'),
  },
  'a claim that is being deleted prevents a migration': {
    volume: CLAIM,
    claim: { ...local(), claim: aClaim('disk', { ...BOUND, metadata: { deletionTimestamp: NOW } }) },
    want: stays('the claim disk is being deleted'),
  },
  'a claim without a volume prevents a migration': {
    volume: CLAIM,
    claim: { claim: aClaim('disk') },
    want: stays('the claim disk has no volume'),
  },
  'an optional claim without a volume does not prevent a migration': {
    volume: CLAIM,
    claim: { claim: aClaim('disk') },
    disk: { optional: true },
    want: ['True'],
  },
  'a volume that is only attached does not matter': {
    volume: { name: 'd', hostDisk: { path: '/x', type: 'Disk' } },
    disk: { plugged: false },
    want: ['True'],
  },
  'nothing is reported before the instance has a node': { phase: 'Scheduling', want: [] },
  'nothing is reported while the cache lacks a volume': {
    volume: CLAIM,
    claim: { claim: aClaim('disk', BOUND) },
    want: [],
  },
  'the condition stays while the cache lacks a volume': {
    volume: CLAIM,
    claim: { claim: aClaim('disk', BOUND) },
    reported,
    want: ['True'],
  },
  'the condition stays after the end': {
    volume: CLAIM,
    claim: { claim: aClaim('disk') },
    phase: 'Failed',
    reported,
    want: ['True'],
  },
};

for (const [name, { volume, disk, claim, phase = 'Running', reported: old, want }] of Object.entries(cases)) {
  test(name, () => {
    const domain = { devices: { disks: volume === undefined ? [] : [{ name: 'd', ...disk }] } };
    const vmi = aVmi({
      spec: { domain, volumes: volume === undefined ? [] : [volume] },
      status: { phase, conditions: old === undefined ? [] : [old] },
    });
    const claims = new Map(claim === undefined ? [] : [['disk', claim]]);
    const nodeName = phase === 'Scheduling' ? {} : { nodeName: 'node-1' };
    const status = decideVmi(aWorld({ vmi, claims, pod: aPod(nodeName) })).status as VmiStatus;
    const condition = findCondition(status.conditions, 'LiveMigratable');
    assert.deepEqual([condition?.status, condition?.message], [want[0], want[1]]);
    assert.equal(condition?.reason, want[0] === 'False' ? 'DisksNotLiveMigratable' : undefined);
  });
}
