import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Disk } from '#api/domain/disk.ts';
import type { VmiStatus } from '#api/virtual-machine-instance/status.ts';
import { volumeStatusOf } from '#controllers/vmi/volume-status.ts';
import { aClaim, aPod, aVmi, aWorld, NOW } from '#controllers/vmi/vmi-world.fixture.ts';
import type { ClaimView, VmiWorld } from '#controllers/vmi/vmi-world.ts';

const claimOf = (name: string, hotpluggable: boolean) => ({
  name,
  persistentVolumeClaim: { claimName: `${name}-claim`, ...(hotpluggable ? { hotpluggable } : {}) },
});

/** Its pod was made with `root` only. */
function world(
  hotplug: VmiStatus['hotplug'],
  more: Partial<VmiWorld> & { disk?: Partial<Disk>; status?: VmiStatus } = {},
) {
  const { disk, status, ...rest } = more;
  const disks = [{ name: 'root' }, { name: 'data', ...disk }];
  const spec = { domain: { devices: { disks } }, volumes: [claimOf('root', false), claimOf('data', true)] };
  const pod = aPod({ phase: 'Running', nodeName: 'n' });
  const volumes = [{ name: 'root', persistentVolumeClaim: { claimName: 'root-claim' } }];
  const vmi = aVmi({ spec, status: { phase: 'Running', ...status, ...(hotplug === undefined ? {} : { hotplug }) } });
  return aWorld({ vmi, pod: { ...pod, spec: { ...pod.spec, volumes } }, ...rest });
}

const told = (phase: 'Plugging' | 'Ready' | 'Unplugging' | 'Failed', message?: string) => [
  { device: 'disk-data', phase, ...(message === undefined ? {} : { message }) },
];
const going = (deletionTimestamp: string): ClaimView => ({
  claim: aClaim('data-claim', { metadata: { deletionTimestamp } }),
});
const podWith = (claimName: string) => {
  const pod = aPod({ phase: 'Running', nodeName: 'n' });
  return { ...pod, spec: { ...pod.spec, volumes: [{ name: 'data', persistentVolumeClaim: { claimName } }] } };
};

interface Case {
  readonly world: VmiWorld;
  /** Phase, reason and message of `data`; undefined: nothing but the claim is told. */
  readonly want: (string | undefined)[] | undefined;
  /** It came with the pod. */
  readonly early?: boolean;
}

const cases: Record<string, Case> = {
  'a volume that came with the pod is told as ever': {
    world: world([], { pod: podWith('data-claim') }),
    want: undefined,
  },
  'also where the node tells of it': { world: world(told('Ready'), { pod: podWith('data-claim') }), want: undefined },
  'until it goes': {
    world: world(told('Unplugging'), { pod: podWith('data-claim') }),
    want: ['Detaching', 'VolumeDetaching', undefined],
    early: true,
  },
  'one that came later waits for the node': { world: world(undefined), want: ['Pending', 'VolumePending', undefined] },
  'one that came later under the name of another waits, too': {
    world: world(undefined, { pod: podWith('another') }),
    want: ['Pending', 'VolumePending', undefined],
  },
  'how far it is is told': {
    world: world(told('Plugging', 'waits for its volume')),
    want: ['Pending', 'VolumePending', 'waits for its volume'],
  },
  'one that is in the guest is ready': {
    world: world(told('Ready')),
    want: ['Ready', 'VolumeReady', 'Successfully attach hotplugged volume data to VM'],
  },
  'why it cannot be plugged in is told': {
    world: world(told('Failed', 'no port is left')),
    want: ['Pending', 'PlugFailed', 'no port is left'],
  },
  'a claim that is missing is named': {
    world: world(undefined, { claims: new Map() }),
    want: ['Pending', 'FailedPvcNotFound', 'PVC default/data-claim does not exist, waiting for it to appear'],
  },
  'so is one that is to go': {
    world: world(told('Plugging'), { claims: new Map([['data-claim', going(NOW)]]) }),
    want: ['Pending', 'FailedPvcNotFound', 'PVC default/data-claim is being deleted'],
  },
  'one that the guest is to let go of is on its way out': {
    world: world(told('Unplugging', 'the guest has not let go')),
    want: ['Detaching', 'VolumeDetaching', 'the guest has not let go'],
  },
  'one that is only attached is not in the guest': {
    world: world(undefined, { disk: { plugged: false } }),
    want: undefined,
  },
  'after the end it stays what it was': {
    world: world(undefined, { pod: undefined, status: { volumeStatus: [{ name: 'data', hotplugVolume: {} }] } }),
    want: ['Pending', 'VolumePending', undefined],
  },
  'one that came with a pod that is gone stays that, too': {
    world: world(undefined, { pod: undefined, status: { volumeStatus: [{ name: 'data' }] } }),
    want: undefined,
  },
};

for (const [name, { world: given, want, early = want === undefined }] of Object.entries(cases)) {
  test(name, () => {
    const [data, root, ...others] = volumeStatusOf(given);
    assert.deepEqual([data?.name, root?.name, others], ['data', 'root', []]);
    assert.equal(root?.hotplugVolume, undefined);
    const { hotplugVolume, phase, reason, message } = data ?? {};
    assert.deepEqual(phase === undefined ? undefined : [phase, reason, message], want);
    assert.deepEqual(hotplugVolume, early ? undefined : {});
    const hasClaim = given.claims.has('data-claim');
    assert.equal(data?.persistentVolumeClaimInfo?.claimName, hasClaim ? 'data-claim' : undefined);
  });
}

test('what the spec no longer has is told until the guest has let go, with the claim that it had', () => {
  const persistentVolumeClaimInfo = { claimName: 'old-claim', volumeMode: 'Block' };
  const status = { volumeStatus: [{ name: 'old', hotplugVolume: {}, persistentVolumeClaimInfo }] };
  const entry = { device: 'disk-old', phase: 'Unplugging' as const, message: 'the guest has not let go' };
  const nic = { device: 'nic-old', phase: 'Unplugging' as const };
  const leaving = volumeStatusOf(world([entry, nic], { status })).filter(({ name }) => name === 'old');
  const want = {
    name: 'old',
    hotplugVolume: {},
    phase: 'Detaching',
    reason: 'VolumeDetaching',
    message: entry.message,
  };
  assert.deepEqual(leaving, [{ ...want, persistentVolumeClaimInfo }]);
  assert.deepEqual(
    volumeStatusOf(world([nic], { status })).map(({ name }) => name),
    ['data', 'root'],
  );
});

test('the state of the VM is told under a name of its own', () => {
  const claim = aClaim('kept', { status: { phase: 'Bound', capacity: { storage: '10Mi' } } });
  const told = volumeStatusOf(world(undefined, { state: { is: 'there', claim, waitsForConsumer: true } }));
  const info = {
    claimName: 'kept',
    accessModes: ['ReadWriteOnce'],
    volumeMode: 'Filesystem',
    capacity: { storage: '10Mi' },
  };
  assert.deepEqual(told[1], { name: 'persistent-state-for-this-vm', persistentVolumeClaimInfo: info });
});
