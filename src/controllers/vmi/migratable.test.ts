import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Disk } from '#api/domain/disk.ts';
import type { Volume } from '#api/domain/volume.ts';
import { LOCAL_DRIVER } from '#api/names.ts';
import type { VmiPhase, VmiStatus } from '#api/virtual-machine-instance/status.ts';
import { decideVmi } from '#controllers/vmi/decide-vmi.ts';
import { aClaim, aPod, aVmi, aVolume, aWorld, NOW } from '#controllers/vmi/vmi-world.fixture.ts';
import type { ClaimView } from '#controllers/vmi/vmi-world.ts';
import { findCondition, type Condition } from '#kube/conditions.ts';

const BOUND = { spec: { volumeName: 'pv' }, status: { phase: 'Bound' as const } };
const local = (): ClaimView => {
  const volume = aVolume('pv', { 'selfsame.io/volume-node': 'node-1' });
  const csi = { driver: LOCAL_DRIVER, volumeHandle: 'pv' };
  return { claim: aClaim('disk', BOUND), volume: { ...volume, spec: { ...volume.spec, csi } } };
};
const CLAIM: Volume = { name: 'd', persistentVolumeClaim: { claimName: 'disk' } };

interface Case {
  readonly volume?: Volume;
  readonly disk?: Partial<Disk>;
  readonly claim?: ClaimView;
  readonly phase?: VmiPhase;
  readonly told?: Condition;
  /** The status; and the message, if it stays. */
  readonly want: readonly [status?: string, message?: string];
}

const told: Condition = { type: 'LiveMigratable', status: 'True', lastTransitionTime: NOW };
const stays = (why: string) => ['False', `cannot migrate VMI: volume d: ${why}`] as const;

const cases: Record<string, Case> = {
  'a guest without disks can move': { want: ['True'] },
  'one with a disk on its node, too: it goes along': { volume: CLAIM, claim: local(), want: ['True'] },
  'and one with a disk that is made anew at each start': {
    volume: { name: 'd', emptyDisk: { capacity: '1Gi' } },
    want: ['True'],
  },
  'one with a file of the node stays': {
    volume: { name: 'd', hostDisk: { path: '/x', type: 'Disk' } },
    want: stays('a hostDisk is a file of its node'),
  },
  'one that only reads from its node stays': {
    volume: CLAIM,
    claim: local(),
    disk: { cdrom: {} },
    want: stays('it is read-only and on one node only'),
  },
  'a volume of others that one node can use at a time keeps it': {
    volume: CLAIM,
    claim: { claim: aClaim('disk', BOUND), volume: aVolume('pv') },
    want: stays('its volume pv cannot be used by two nodes'),
  },
  'a claim without a volume keeps it': {
    volume: CLAIM,
    claim: { claim: aClaim('disk') },
    want: stays('the claim disk has no volume'),
  },
  'not if the guest does without it': {
    volume: CLAIM,
    claim: { claim: aClaim('disk') },
    disk: { optional: true },
    want: ['True'],
  },
  'what is only attached does not matter': {
    volume: { name: 'd', hostDisk: { path: '/x', type: 'Disk' } },
    disk: { plugged: false },
    want: ['True'],
  },
  'nothing is said before it has a node': { phase: 'Scheduling', want: [] },
  'nor of a volume that no watch has shown': {
    volume: CLAIM,
    claim: { claim: aClaim('disk', BOUND) },
    want: [],
  },
  'what was said stands meanwhile': { volume: CLAIM, claim: { claim: aClaim('disk', BOUND) }, told, want: ['True'] },
  'and after the end': {
    volume: CLAIM,
    claim: { claim: aClaim('disk') },
    phase: 'Failed',
    told,
    want: ['True'],
  },
};

for (const [name, { volume, disk, claim, phase = 'Running', told: old, want }] of Object.entries(cases)) {
  test(name, () => {
    const domain = { devices: { disks: volume === undefined ? [] : [{ name: 'd', ...disk }] } };
    const vmi = aVmi({
      spec: { domain, volumes: volume === undefined ? [] : [volume] },
      status: { phase, conditions: old === undefined ? [] : [old] },
    });
    const claims = new Map(claim === undefined ? [] : [['disk', claim]]);
    const nodeName = phase === 'Scheduling' ? {} : { nodeName: 'node-1' };
    const status = decideVmi(aWorld({ vmi, claims, pod: aPod(nodeName) })).status as VmiStatus;
    const said = findCondition(status.conditions, 'LiveMigratable');
    assert.deepEqual([said?.status, said?.message], [want[0], want[1]]);
    assert.equal(said?.reason, want[0] === 'False' ? 'DisksNotLiveMigratable' : undefined);
  });
}
