import assert from 'node:assert/strict';
import { test } from 'node:test';
import { vmOwnerReference } from '#api/virtual-machine/owner.ts';
import { stateClaimStatus } from '#controllers/vm/state-claim.ts';
import { aVm, aVmi, aWorld } from '#controllers/vm/testing/vm-world.ts';
import type { VmWorld } from '#controllers/vm/vm-world.ts';
import type { PersistentVolumeClaim } from '#kube/core-kinds.ts';
import type { ObjectMeta, Stored } from '#kube/meta.ts';

const plain = aVm();
const { name } = plain.metadata;
const OWN: ObjectMeta = { ownerReferences: [{ ...vmOwnerReference(plain) }] };
const MARKS: ObjectMeta = { labels: { 'persistent-state-for': name } };
const KNOWN = { stateClaim: { name: 'a', uid: 'a-uid' } };

function aClaim(claimName: string, metadata: ObjectMeta = {}): Stored<PersistentVolumeClaim> {
  const stored = { uid: `${claimName}-uid`, resourceVersion: '1', creationTimestamp: `2026-01-0${claimName.length}` };
  return {
    apiVersion: 'v1',
    kind: 'PersistentVolumeClaim',
    metadata: { ...plain.metadata, ...stored, ownerReferences: undefined, ...metadata, name: claimName },
    spec: {},
  };
}

/** Returns the VM with a TPM and this status. */
function keeper(status: VmWorld['vm']['status'] = {}): VmWorld['vm'] {
  const spec = { domain: { devices: { tpm: { persistent: true } } } };
  return { ...plain, spec: { ...plain.spec, template: { spec } }, status };
}

const runningWith = (claimName: string) => {
  const vmi = aVmi('Running');
  const state = { name: 'persistent-state-for-this-vm', target: '', persistentVolumeClaimInfo: { claimName } };
  return { ...vmi, status: { ...vmi.status, volumeStatus: [state] } };
};

const cases: Record<string, { world: Partial<VmWorld>; want?: string }> = {
  'the marked claim of a VM that has none yet': {
    world: { vm: keeper(), stateClaims: [aClaim('a', { ...OWN, ...MARKS })] },
    want: 'a',
  },
  'nothing for a VM that never had state': { world: { vm: plain, stateClaims: [aClaim('a', { ...OWN, ...MARKS })] } },
  'the known claim, also without marks and owner': {
    world: { vm: keeper(KNOWN), stateClaims: [aClaim('a')] },
    want: 'a',
  },
  'the known claim, not a newer one with the same marks that claims to supersede it': {
    world: {
      vm: keeper(KNOWN),
      stateClaims: [
        aClaim('a', { ...OWN, ...MARKS }),
        aClaim('newer', { ...OWN, ...MARKS, annotations: { 'selfsame.io/supersedes': 'a-uid' } }),
      ],
    },
    want: 'a',
  },
  'the claim that has replaced the known one, also before it has marks': {
    world: {
      vm: keeper(KNOWN),
      stateClaims: [
        aClaim('a', { ...OWN, ...MARKS, annotations: { 'selfsame.io/replaced-by': 'next-uid' } }),
        aClaim('next', OWN),
      ],
    },
    want: 'next',
  },
  'the known claim while its replacement does not belong to the VM': {
    world: {
      vm: keeper(KNOWN),
      stateClaims: [
        aClaim('a', { ...OWN, ...MARKS, annotations: { 'selfsame.io/replaced-by': 'next-uid' } }),
        aClaim('next', MARKS),
      ],
    },
    want: 'a',
  },
  'the claim that the guest uses': {
    world: { vm: keeper(), vmi: runningWith('used'), stateClaims: [aClaim('used'), aClaim('a', { ...OWN, ...MARKS })] },
    want: 'used',
  },
  'another claim if the known one is gone': {
    world: { vm: keeper(KNOWN), stateClaims: [aClaim('b', { ...OWN, ...MARKS })] },
    want: 'b',
  },
  'no disk of a VM, whatever its marks say': {
    world: { vm: keeper(), stateClaims: [aClaim('a', MARKS)], diskUserOf: () => 'ledger' },
  },
};

for (const [sentence, { world, want }] of Object.entries(cases)) {
  test(`the status names ${sentence}`, () => {
    const { stateClaim } = stateClaimStatus(aWorld(world));
    assert.deepEqual(stateClaim, want === undefined ? undefined : { name: want, uid: `${want}-uid` });
  });
}
