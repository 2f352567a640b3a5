import assert from 'node:assert/strict';
import { test } from 'node:test';
import { decideRetention } from '#controllers/protection/decide-retention.ts';
import type { PersistentVolume, PersistentVolumeClaim } from '#kube/core-kinds.ts';
import type { ObjectMeta, Stored } from '#kube/meta.ts';

const stored = { uid: 'u', resourceVersion: '7', creationTimestamp: '2026-01-01T00:00:00Z' };

function aClaim(metadata: ObjectMeta = {}): Stored<PersistentVolumeClaim> {
  const spec = { volumeName: 'pv' };
  return { apiVersion: 'v1', kind: 'PersistentVolumeClaim', metadata: { name: 'root', ...stored, ...metadata }, spec };
}

function aVolume(persistentVolumeReclaimPolicy: string, own?: string): Stored<PersistentVolume> {
  const annotations: Record<string, string> = own === undefined ? {} : { 'selfsame.io/reclaim-policy': own };
  const spec = { persistentVolumeReclaimPolicy } as PersistentVolume['spec'];
  return { apiVersion: 'v1', kind: 'PersistentVolume', metadata: { name: 'pv', ...stored, annotations }, spec };
}

const DELETING: ObjectMeta = { deletionTimestamp: '2026-01-01T00:00:00Z' };
const REPLACED: ObjectMeta = { ...DELETING, annotations: { 'selfsame.io/replaced-by': 'x' } };

const cases: Record<
  string,
  { volume: Stored<PersistentVolume>; claim: ObjectMeta; vms: string[]; want?: readonly [string, string | null] }
> = {
  'a claim that is kept': { volume: aVolume('Delete'), claim: {}, vms: ['ns/db'] },
  'a claim under deletion of a protected VM': {
    volume: aVolume('Delete'),
    claim: DELETING,
    vms: ['ns/db'],
    want: ['Retain', 'Delete'],
  },
  'a claim under deletion of no protected VM': { volume: aVolume('Delete'), claim: DELETING, vms: [] },
  'a claim that a restore or migration has replaced': { volume: aVolume('Delete'), claim: REPLACED, vms: ['ns/db'] },
  'a volume that is retained anyway': { volume: aVolume('Retain'), claim: DELETING, vms: ['ns/db'] },
  'a volume that is retained already': { volume: aVolume('Retain', 'Delete'), claim: DELETING, vms: ['ns/db'] },
  'a retained volume whose VM is not protected any more': {
    volume: aVolume('Retain', 'Delete'),
    claim: DELETING,
    vms: [],
    want: ['Delete', null],
  },
  'a retained volume with a new claim': {
    volume: aVolume('Retain', 'Delete'),
    claim: {},
    vms: ['ns/db'],
    want: ['Delete', null],
  },
};

for (const [sentence, { volume, claim, vms, want }] of Object.entries(cases)) {
  test(`the reclaim policy of ${sentence}: ${want?.[0] ?? 'unchanged'}`, () => {
    const [change] = decideRetention({ volume, claim: aClaim(claim), vms }).changes;
    const body = change?.do === 'patch' ? change.patch.body : undefined;
    const expected = want && {
      metadata: { resourceVersion: '7', annotations: { 'selfsame.io/reclaim-policy': want[1] } },
      spec: { persistentVolumeReclaimPolicy: want[0] },
    };
    assert.deepEqual(body, expected);
  });
}
