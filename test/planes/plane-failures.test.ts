/** Starts that fail, on the whole plane: the status of the VM meanwhile, and how it continues. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { HypervisorError } from '#node/hypervisor/hypervisor.ts';
import type { Loose } from '#test/support/test-api.ts';
import { aClaim, aVm, aVmOnClaim, startVmPlane, type VmPlane } from '#test/support/vm-plane.ts';

const ALWAYS = { runStrategy: 'Always' };
const RUNNING = 'Running, VMI Running, running, 1';

const statusOf = async (plane: VmPlane, vm: string): Promise<Loose> => (await plane.get('VirtualMachine', vm)).status;
const conditionOf = async (plane: VmPlane, kind: string, name: string, type: string): Promise<Loose> =>
  (await plane.get(kind, name)).status.conditions.find((condition: Loose) => condition.type === type);

const aVolume = (name: string, spec: Loose): Loose => ({
  apiVersion: 'v1',
  kind: 'PersistentVolume',
  metadata: { name },
  spec: {
    capacity: { storage: '64Mi' },
    accessModes: ['ReadWriteOnce'],
    hostPath: { path: `/simulated/${name}` },
    ...spec,
  },
});

test('starts that fail', async (t) => {
  const plane = await startVmPlane(t);

  await t.test('a missing claim is reported, and the VM waits for it', async () => {
    await plane.apply(aVmOnClaim('lost-claim', 'later', ALWAYS));
    assert.equal(await plane.summaryOf('lost-claim'), 'ErrorPvcNotFound, VMI Pending, no guest, 0');
    assert.deepEqual(await plane.list('Pod'), []);
    await plane.apply(aClaim('later'));
    assert.equal(await plane.summaryOf('lost-claim'), RUNNING);
  });

  await t.test('the VM waits for a claim whose volume is created for its first consumer', async () => {
    await plane.apply({
      apiVersion: 'storage.k8s.io/v1',
      kind: 'StorageClass',
      metadata: { name: 'elsewhere' },
      provisioner: 'example.org/slow',
      volumeBindingMode: 'WaitForFirstConsumer',
    });
    await plane.apply(aClaim('slow', { storageClassName: 'elsewhere' }));
    await plane.apply(aVmOnClaim('first-user', 'slow', ALWAYS));
    assert.equal(await plane.summaryOf('first-user'), 'WaitingForVolumeBinding, VMI Scheduling, no guest, 0');
    const { metadata } = await plane.get('PersistentVolumeClaim', 'slow');
    assert.match(metadata.annotations['volume.kubernetes.io/selected-node'], /^node-[12]$/);
    await plane.apply(aVolume('made-at-last', { storageClassName: 'elsewhere' }));
    await plane.advance(15_000);
    assert.equal(await plane.summaryOf('first-user'), RUNNING);
  });

  await t.test('a claim without a volume that does not wait for a consumer leaves the VM unschedulable', async () => {
    await plane.apply(aClaim('stuck', { storageClassName: 'by-hand' }));
    await plane.apply(aVmOnClaim('waits', 'stuck', ALWAYS));
    assert.equal(await plane.summaryOf('waits'), 'ErrorUnschedulable, VMI Scheduling, no guest, 0');
    const { message } = await conditionOf(plane, 'VirtualMachine', 'waits', 'PodScheduled');
    assert.match(message, /pod has unbound immediate PersistentVolumeClaims/);
    await plane.apply(aVolume('by-hand', { storageClassName: 'by-hand' }));
    await plane.advance(15_000);
    assert.equal(await plane.summaryOf('waits'), RUNNING);
  });

  await t.test('a machine type that no node has leaves the VM unschedulable', async () => {
    const { warnings } = await plane.post(aVm('future', ALWAYS, { domain: { machine: { type: 'pc-q35-99.0' } } }));
    await plane.settle();
    const problem = /no node offers the machine type "pc-q35-99\.0"; the nodes offer q35, pc-q35-rhel9\.2\.0, .*others/;
    assert.equal(warnings.length, 1);
    assert.match(warnings[0] ?? '', /^spec\.template\.spec\.domain\.machine\.type: the VM cannot start: no node/);
    assert.match(warnings[0] ?? '', problem);
    assert.equal(await plane.summaryOf('future'), 'ErrorUnschedulable, VMI Scheduling, no guest, 0');
    const { reason, message } = await conditionOf(plane, 'VirtualMachine', 'future', 'PodScheduled');
    assert.equal(reason, 'Unschedulable');
    assert.match(
      message,
      /^Cannot schedule the VM: no node .*; 0\/2 nodes are available: 2 node\(s\) didn't match Pod's/,
    );
    assert.match(message, problem);
    await plane.delete('VirtualMachine', 'future');
    assert.equal(await plane.find('VirtualMachineInstance', 'future'), undefined);
  });

  await t.test('a full disk pauses the guest, and the VM names the disk, the cause and the way out', async () => {
    await plane.apply(aClaim('small', { storageClassName: 'local' }));
    await plane.apply(aVmOnClaim('full', 'small', ALWAYS));
    plane.guest('full').failDisks([{ deviceId: 'disk-root', cause: 'noSpace' }]);
    await plane.settle();
    assert.equal(await plane.summaryOf('full'), 'Paused, VMI Running, paused, 1');
    const { reason, message } = await conditionOf(plane, 'VirtualMachine', 'full', 'Paused');
    assert.equal(reason, 'PausedIOError');
    const text =
      /^VMI was paused, .*: volume "root" \(PersistentVolumeClaim "small"\): no space left on the storage of node-[12]; free space there, then run "virtctl unpause vm full"$/;
    assert.match(message, text);
    const events = (await plane.list('Event')).filter((event) => event.reason === 'IOerror');
    assert.deepEqual(
      events.map((event) => [event.message, event.count]),
      [[message, 1]],
    );
    assert.equal(await plane.runVerb('unpause', 'full'), '200');
    assert.equal(await plane.summaryOf('full'), RUNNING);
  });

  await t.test('a definition that the hypervisor refuses is retried with increasing delays', async () => {
    plane.failStarts('refused', new HypervisorError('Cannot start domain: no such CPU', { permanent: true }));
    await plane.apply(aVm('refused', ALWAYS));
    for (const failures of [1, 2, 3]) {
      assert.equal(await plane.summaryOf('refused'), 'CrashLoopBackOff, no VMI, no guest, 0');
      const { startFailure } = await statusOf(plane, 'refused');
      assert.equal(startFailure.consecutiveFailCount, failures);
      const leftMs = Date.parse(startFailure.retryAfterTimestamp) - plane.clock.now();
      const least = 10_000 * failures ** 2;
      assert.ok(leftMs > least - 5000 && leftMs <= least * 1.5, `${leftMs} ms after ${failures} failures`);
      if (failures === 3) plane.failStarts('refused');
      await plane.advance(leftMs + 1000);
    }
    assert.equal(await plane.summaryOf('refused'), RUNNING);
    assert.equal((await statusOf(plane, 'refused')).startFailure, undefined);
  });

  await t.test('a damaged image: the VM names the volume, the claim and the damage', async () => {
    const disk = { deviceId: 'disk-root', is: 'damaged', detail: 'qcow2 header too short' } as const;
    plane.failStarts('damaged', new HypervisorError('Cannot start domain', { permanent: true, disk }));
    await plane.apply(aClaim('broken', { storageClassName: 'local' }));
    await plane.apply(aVmOnClaim('damaged', 'broken', ALWAYS));
    assert.equal(await plane.summaryOf('damaged'), 'CrashLoopBackOff, no VMI, no guest, 0');
    const { reason, message } = await conditionOf(plane, 'VirtualMachine', 'damaged', 'Failure');
    const text =
      'Cannot start VirtualMachineInstance "damaged": the image of volume "root" (PersistentVolumeClaim "broken") is damaged (qcow2 header too short); restore the claim from a snapshot, or upload the image again into a new claim';
    assert.deepEqual([reason, message], ['ImageDamaged', `The last start failed: ${text}`]);
    const events = (await plane.list('Event')).filter((event) => event.reason === 'ImageDamaged');
    assert.ok(events.length > 0 && events.every((event) => event.message === text));
    await plane.delete('VirtualMachine', 'damaged');
  });

  await t.test('a start that may succeed later is retried with the same instance', async () => {
    plane.failStarts('busy', new HypervisorError('Cannot start domain: no memory'));
    await plane.apply(aVm('busy', ALWAYS));
    const { metadata } = await plane.get('VirtualMachineInstance', 'busy');
    await plane.advance(10_000);
    assert.equal(await plane.summaryOf('busy'), 'Starting, VMI Scheduled, no guest, 0');
    const { reason, message } = await conditionOf(plane, 'VirtualMachineInstance', 'busy', 'Synchronized');
    assert.deepEqual([reason, message], ['StartFailed', 'Cannot start domain: no memory']);
    plane.failStarts('busy');
    await plane.advance(15_000);
    assert.equal(await plane.summaryOf('busy'), RUNNING);
    assert.equal((await plane.get('VirtualMachineInstance', 'busy')).metadata.uid, metadata.uid);
    assert.equal(await conditionOf(plane, 'VirtualMachineInstance', 'busy', 'Synchronized'), undefined);
  });

  await t.test('a guest that crashes after it ran is restarted at once, every time', async () => {
    await plane.apply(aVm('crashes', ALWAYS));
    for (let starts = 2; starts <= 4; starts++) {
      plane.guest('crashes').crash('QEMU was killed by signal 11');
      await plane.settle();
      assert.equal(await plane.summaryOf('crashes'), `Running, VMI Running, running, ${starts}`);
    }
    assert.equal((await statusOf(plane, 'crashes')).startFailure, undefined);
  });

  await t.test('a start without the files of the built-in guest fails with the reason', async () => {
    const files = plane.nodes.map(({ guest }) => guest);
    for (const node of plane.nodes) {
      node.guest = undefined;
      await plane.restartAgent(node.name);
    }
    await plane.apply(aVm('no-image', ALWAYS));
    assert.equal(await plane.summaryOf('no-image'), 'CrashLoopBackOff, no VMI, no guest, 0');
    const failureMessage =
      /^InvalidDefinition .*image: Invalid value: "selfsame\/guest": the files of .* are not on this node$/;
    assert.ok((await plane.eventsOf('no-image')).some((event) => failureMessage.test(event)));
    for (const [index, node] of plane.nodes.entries()) {
      node.guest = files[index];
      await plane.restartAgent(node.name);
    }
    // It may have failed a second time while the agents started, and waits longer then.
    await plane.advance(60_000);
    assert.equal(await plane.summaryOf('no-image'), RUNNING);
  });
});
