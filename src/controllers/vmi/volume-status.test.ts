import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Disk } from '#api/domain/disk.ts';
import type { VmiStatus } from '#api/virtual-machine-instance/status.ts';
import { volumeStatusOf } from '#controllers/vmi/volume-status.ts';
import { aClaim, aPod, aVmi, aWorld, NOW } from '#controllers/vmi/testing/vmi-world.ts';
import type { VmiWorld } from '#controllers/vmi/vmi-world.ts';
import type { ClaimView } from '#controllers/shared/launcher/claim-views.ts';

const claimOf = (name: string, hotpluggable: boolean) => ({
  name,
  persistentVolumeClaim: { claimName: `${name}-claim`, ...(hotpluggable ? { hotpluggable } : {}) },
});

/** An instance whose pod was created with `root` only. */
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

const hotplugReport = (phase: 'Plugging' | 'Ready' | 'Unplugging' | 'Failed', message?: string) => [
  { device: 'disk-data', phase, ...(message === undefined ? {} : { message }) },
];
const aDeletingClaim = (deletionTimestamp: string): ClaimView => ({
  claim: aClaim('data-claim', { metadata: { deletionTimestamp } }),
});
const podWith = (claimName: string) => {
  const pod = aPod({ phase: 'Running', nodeName: 'n' });
  return { ...pod, spec: { ...pod.spec, volumes: [{ name: 'data', persistentVolumeClaim: { claimName } }] } };
};

interface Case {
  readonly world: VmiWorld;
  /** Phase, reason and message of `data`; undefined if only the claim is reported. */
  readonly want: (string | undefined)[] | undefined;
  /** True if the pod names the volume. */
  readonly early?: boolean;
}

const cases: Record<string, Case> = {
  'a volume that the pod names has no hotplug status': {
    world: world([], { pod: podWith('data-claim') }),
    want: undefined,
  },
  'a volume that the pod names has no hotplug status if the node reports it': {
    world: world(hotplugReport('Ready'), { pod: podWith('data-claim') }),
    want: undefined,
  },
  'a volume that the pod names gets a hotplug status when it is unplugged': {
    world: world(hotplugReport('Unplugging'), { pod: podWith('data-claim') }),
    want: ['Detaching', 'VolumeDetaching', undefined],
    early: true,
  },
  'a hotplugged volume waits for the node': { world: world(undefined), want: ['Pending', 'VolumePending', undefined] },
  'a hotplugged volume with the name of another one waits for the node': {
    world: world(undefined, { pod: podWith('another') }),
    want: ['Pending', 'VolumePending', undefined],
  },
  'the progress of a hotplugged volume is reported': {
    world: world(hotplugReport('Plugging', 'waits for its volume')),
    want: ['Pending', 'VolumePending', 'waits for its volume'],
  },
  'a plugged volume is ready': {
    world: world(hotplugReport('Ready')),
    want: ['Ready', 'VolumeReady', 'Successfully attach hotplugged volume data to VM'],
  },
  'the reason why a volume cannot be plugged in is reported': {
    world: world(hotplugReport('Failed', 'no port is left')),
    want: ['Pending', 'PlugFailed', 'no port is left'],
  },
  'a missing claim is named': {
    world: world(undefined, { claims: new Map() }),
    want: ['Pending', 'FailedPvcNotFound', 'PVC default/data-claim does not exist, waiting for it to appear'],
  },
  'a claim under deletion is named': {
    world: world(hotplugReport('Plugging'), { claims: new Map([['data-claim', aDeletingClaim(NOW)]]) }),
    want: ['Pending', 'FailedPvcNotFound', 'PVC default/data-claim is being deleted'],
  },
  'a volume that the guest is to release is detaching': {
    world: world(hotplugReport('Unplugging', 'the guest has not let go')),
    want: ['Detaching', 'VolumeDetaching', 'the guest has not let go'],
  },
  'a volume that is only attached has no hotplug status': {
    world: world(undefined, { disk: { plugged: false } }),
    want: undefined,
  },
  'the status of a volume stays after the end': {
    world: world(undefined, { pod: undefined, status: { volumeStatus: [{ name: 'data', hotplugVolume: {} }] } }),
    want: ['Pending', 'VolumePending', undefined],
  },
  'a volume of a pod that is gone keeps its status': {
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

test('a volume that the spec no longer has is reported until the guest has released it, with its claim', () => {
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

test('the state claim is reported under its own name', () => {
  const claim = aClaim('kept', { status: { phase: 'Bound', capacity: { storage: '10Mi' } } });
  const reported = volumeStatusOf(world(undefined, { state: { kind: 'exists', claim, waitsForConsumer: true } }));
  const info = {
    claimName: 'kept',
    accessModes: ['ReadWriteOnce'],
    volumeMode: 'Filesystem',
    capacity: { storage: '10Mi' },
  };
  assert.deepEqual(reported[1], { name: 'persistent-state-for-this-vm', persistentVolumeClaimInfo: info });
});
