/**
 * Guest agents and probes on the whole plane: what is reported about a guest, and what happens if it does not answer.
 */
import assert from 'node:assert/strict';
import type { Duplex } from 'node:stream';
import { test } from 'node:test';
import { aNetworkDefinition } from '#test/support/secondary-networks.ts';
import type { Loose } from '#test/support/test-api.ts';
import { aClaim, aVm, startVmPlane, type VmPlane } from '#test/support/vm-plane.ts';

const READS = '/apis/subresources.kubevirt.io/v1/namespaces/default/virtualmachineinstances/vm';
const ALWAYS = { runStrategy: 'Always' };

async function conditionOf(plane: VmPlane, type: string, kind = 'VirtualMachineInstance'): Promise<Loose> {
  const { status } = await plane.get(kind, 'vm');
  return status.conditions.find((condition: Loose) => condition.type === type);
}
const readyOf = async (plane: VmPlane) => (await conditionOf(plane, 'Ready')).status;
const withProbes = (probes: Loose, strategy = 'Always'): Loose => {
  const vm: Loose = aVm('vm', { runStrategy: strategy });
  Object.assign(vm.spec.template.spec, probes);
  return vm;
};
/** Answers any request with this status. */
const respondWith = (status: number) => (connection: Duplex) =>
  void connection.once('data', () => connection.end(`HTTP/1.1 ${status} X\r\ncontent-length: 0\r\n\r\n`));

test('a connected guest agent is reported until it disconnects', async (t) => {
  const plane = await startVmPlane(t, { nodes: 1 });
  await plane.apply(aVm('vm', ALWAYS));
  assert.equal(await conditionOf(plane, 'AgentConnected'), undefined);
  const refused = await plane.call('GET', `${READS}/guestosinfo`);
  assert.deepEqual([refused.status, refused.body.reason], [409, 'Conflict']);
  assert.match(refused.body.message, /VMI does not have guest agent connected/);

  plane.guest('vm').startAgent({ 'guest-get-users': [{ user: 'kim', 'login-time': 5.5 }] });
  await plane.settle();
  assert.equal((await conditionOf(plane, 'AgentConnected')).status, 'True');
  assert.equal((await conditionOf(plane, 'AgentConnected', 'VirtualMachine')).status, 'True');
  const { status } = await plane.get('VirtualMachineInstance', 'vm');
  assert.equal(status.guestOSInfo.prettyName, 'Simulated Linux 1');
  const [nic] = status.interfaces;
  assert.deepEqual([nic.ipAddress, nic.infoSource], ['10.0.2.15', 'domain, guest-agent']);

  const info = await plane.call('GET', `${READS}/guestosinfo`);
  assert.deepEqual([info.status, info.body.hostname, info.body.timezone], [200, 'simulated', 'UTC, 0']);
  const users = await plane.call('GET', `${READS}/userlist`);
  assert.deepEqual(users.body.items, [{ userName: 'kim', loginTime: 5.5 }]);

  await plane.restartAgent('node-1');
  assert.equal((await plane.get('VirtualMachineInstance', 'vm')).status.guestOSInfo.id, 'simulated');

  plane.guest('vm').stopAgent();
  await plane.settle();
  assert.equal(await conditionOf(plane, 'AgentConnected'), undefined);
  const after = (await plane.get('VirtualMachineInstance', 'vm')).status;
  assert.deepEqual([after.guestOSInfo, after.interfaces[0].ipAddress], [undefined, undefined]);
});

test('an agent that moves with its guest to another node answers there', async (t) => {
  const plane = await startVmPlane(t, { nodes: 2 });
  await plane.apply(aVm('vm', ALWAYS));
  plane.guest('vm').startAgent();
  await plane.settle();
  const from = (await plane.get('VirtualMachineInstance', 'vm')).status.nodeName;
  assert.equal(await plane.runVerb('migrate', 'vm'), '202');
  await plane.advance(60_000);
  const { status } = await plane.get('VirtualMachineInstance', 'vm');
  assert.notEqual(status.nodeName, from);
  assert.equal((await conditionOf(plane, 'AgentConnected')).status, 'True');
  assert.equal((await plane.call('GET', `${READS}/guestosinfo`)).body.os.id, 'simulated');
});

test('changed addresses are reported, and unchanged ones are not written again', async (t) => {
  const plane = await startVmPlane(t, { nodes: 1 });
  await plane.apply(aVm('vm', ALWAYS));
  plane.guest('vm').startAgent();
  await plane.settle();
  const { resourceVersion } = (await plane.get('VirtualMachineInstance', 'vm')).metadata;
  await plane.advance(300_000);
  assert.equal((await plane.get('VirtualMachineInstance', 'vm')).metadata.resourceVersion, resourceVersion);
  plane.guest('vm').startAgent({ 'guest-network-get-interfaces': [] });
  await plane.advance(120_000);
  assert.equal((await plane.get('VirtualMachineInstance', 'vm')).status.interfaces[0].ipAddress, undefined);
});

test('a guest that a user freezes thaws by itself, also if the agent of the node was replaced meanwhile', async (t) => {
  const plane = await startVmPlane(t, { nodes: 1 });
  await plane.apply(aVm('vm', ALWAYS));
  assert.match(await plane.runVerb('freeze', 'vm'), /409 .*does not have guest agent connected/);
  plane.guest('vm').startAgent();
  await plane.settle();
  assert.match(await plane.runVerb('freeze', 'vm', { unfreezeTimeout: '0s' } as Loose), /400 .*from 1s to 1h/);
  assert.equal(await plane.runVerb('freeze', 'vm', { unfreezeTimeout: '1m0s' } as Loose), '200');
  assert.equal((await plane.get('VirtualMachineInstance', 'vm')).status.fsFreezeStatus, 'frozen');
  await plane.restartAgent('node-1');
  assert.equal(plane.guest('vm').isFrozen, true);
  await plane.advance(70_000);
  assert.equal(plane.guest('vm').isFrozen, false);
  assert.equal((await plane.get('VirtualMachineInstance', 'vm')).status.fsFreezeStatus, undefined);
  assert.equal(await plane.runVerb('freeze', 'vm'), '200');
  assert.equal(await plane.runVerb('unfreeze', 'vm'), '200');
  assert.equal(plane.guest('vm').isFrozen, false);
});

const SNAPSHOT = {
  kind: 'VirtualMachineSnapshot',
  apiVersion: 'snapshot.kubevirt.io/v1beta1',
  metadata: { name: 'snap' },
  spec: { source: { apiGroup: 'kubevirt.io', kind: 'VirtualMachine', name: 'vm' } },
};
async function withDisk(plane: VmPlane): Promise<void> {
  await plane.apply(aClaim('data'));
  const vm: Loose = aVm('vm', ALWAYS);
  const { spec } = vm.spec.template;
  spec.domain.devices.disks = [{ name: 'data', disk: { bus: 'virtio' } }];
  spec.volumes = [{ name: 'data', persistentVolumeClaim: { claimName: 'data' } }];
  await plane.apply(vm);
}

test('a snapshot freezes the guest while its copies begin, and thaws it', async (t) => {
  const plane = await startVmPlane(t, { nodes: 1 });
  await withDisk(plane);
  const commands: string[] = [];
  const recordCommand = (word: string) => () => {
    commands.push(word);
    return 1;
  };
  plane.guest('vm').startAgent({
    'guest-fsfreeze-freeze': recordCommand('freeze'),
    'guest-fsfreeze-thaw': recordCommand('thaw'),
  });
  await plane.settle();
  await plane.apply(SNAPSHOT);
  await plane.advance(10_000);
  const { status } = await plane.get('VirtualMachineSnapshot', 'snap');
  assert.deepEqual([status.phase, status.indications], ['Succeeded', ['Online', 'GuestAgent']]);
  assert.deepEqual(commands, ['freeze', 'thaw']);
});

test('a guest that cannot be frozen is copied nevertheless, and that is reported', async (t) => {
  const plane = await startVmPlane(t, { nodes: 1 });
  await withDisk(plane);
  plane.guest('vm').startAgent({ 'guest-fsfreeze-freeze': new Error('busy') });
  await plane.settle();
  await plane.apply(SNAPSHOT);
  await plane.advance(10_000);
  const { status } = await plane.get('VirtualMachineSnapshot', 'snap');
  assert.equal(status.phase, 'Succeeded');
  assert.deepEqual(status.indications, ['Online', 'QuiesceTimeout']);
  assert.ok((await plane.eventsOf('vm')).some((text) => text.startsWith('QuiesceTimeout ') && text.includes('busy')));
  assert.equal(plane.guest('vm').isFrozen, false);
});

test('a guest is ready when its probe succeeds, and runs in any case', async (t) => {
  const plane = await startVmPlane(t, { nodes: 1 });
  await plane.apply(withProbes({ readinessProbe: { httpGet: { path: '/healthz', port: 8080 }, periodSeconds: 5 } }));
  assert.equal(await plane.summaryOf('vm'), 'Running, VMI Running, running, 1');
  assert.equal(await readyOf(plane), 'False');
  plane.guest('vm').listen(8080, respondWith(503));
  await plane.advance(10_000);
  assert.equal(await readyOf(plane), 'False');
  plane.guest('vm').listen(8080, respondWith(204));
  await plane.advance(10_000);
  const ready = await conditionOf(plane, 'Ready');
  assert.deepEqual([ready.status, ready.reason], ['True', undefined]);
  await plane.restartAgent('node-1');
  assert.equal(await readyOf(plane), 'True');
  plane.guest('vm').stopListening();
  await plane.advance(30_000);
  assert.equal(await readyOf(plane), 'False');
  assert.equal(await plane.summaryOf('vm'), 'Running, VMI Running, running, 1');
  const events = await plane.eventsOf('vm');
  assert.ok(events.some((text) => text === 'Unhealthy Readiness probe failed: HTTP probe failed with statuscode: 503'));
});

test('a guest that fails its liveness probe is stopped, and its run strategy starts it again', async (t) => {
  const plane = await startVmPlane(t, { nodes: 1 });
  const livenessProbe = { tcpSocket: { port: 7777 }, initialDelaySeconds: 30, periodSeconds: 5 };
  await plane.apply(withProbes({ livenessProbe }));
  await plane.advance(25_000);
  assert.equal(plane.startsOf('vm').length, 1);
  plane.guest('vm').listen(7777, () => undefined);
  await plane.advance(60_000);
  assert.equal(plane.startsOf('vm').length, 1);
  assert.match(await plane.runVerb('pause', 'vm'), /403 .*Pausing VMIs with LivenessProbe is currently not supported/);
  plane.guest('vm').stopListening();
  await plane.advance(30_000);
  assert.equal(plane.startsOf('vm').length, 2);
  const events = await plane.eventsOf('vm');
  assert.ok(events.some((text) => text.startsWith('LivenessProbeFailed The guest failed its liveness probe 3 times')));
});

test('a paused guest is not probed, and its agent answers again after it resumes', async (t) => {
  const plane = await startVmPlane(t, { nodes: 1 });
  await plane.apply(withProbes({ livenessProbe: { guestAgentPing: {}, periodSeconds: 5, initialDelaySeconds: 60 } }));
  plane.guest('vm').startAgent();
  await plane.advance(70_000);
  assert.equal(await plane.runVerb('pause', 'vm'), '200');
  await plane.advance(120_000);
  assert.equal(await plane.runVerb('unpause', 'vm'), '200');
  await plane.advance(30_000);
  assert.equal(plane.startsOf('vm').length, 1);
  plane.guest('vm').stopAgent();
  await plane.advance(30_000);
  assert.equal(plane.startsOf('vm').length, 2);
});

test('a program in the guest decides about its readiness', async (t) => {
  const plane = await startVmPlane(t, { nodes: 1 });
  await plane.apply(withProbes({ readinessProbe: { exec: { command: ['/bin/check', '-q'] }, periodSeconds: 5 } }));
  let exitcode = 1;
  const requests: Loose[] = [];
  plane.guest('vm').startAgent({
    'guest-exec': (args: Loose) => {
      requests.push(args);
      return { pid: 7 };
    },
    'guest-exec-status': () => ({ exited: true, exitcode, 'err-data': Buffer.from('no\n').toString('base64') }),
  });
  await plane.advance(20_000);
  assert.equal(await readyOf(plane), 'False');
  assert.deepEqual(requests[0], { path: '/bin/check', arg: ['-q'], 'capture-output': true });
  exitcode = 0;
  await plane.advance(10_000);
  assert.equal(await readyOf(plane), 'True');
});

test('a guest on a bridge with an unknown address is not ready, is not stopped, and an Event says what would help', async (t) => {
  const plane = await startVmPlane(t, { nodes: 1 });
  const probe = { tcpSocket: { port: 7777 }, periodSeconds: 5 };
  const vm = withProbes({ readinessProbe: probe, livenessProbe: probe });
  const { spec } = vm.spec.template;
  await plane.apply(aNetworkDefinition('br-of-nobody'));
  spec.networks = [{ name: 'lan', multus: { networkName: 'br-of-nobody' } }];
  spec.domain.devices.interfaces = [{ name: 'lan', bridge: {} }];
  await plane.apply(vm);
  await plane.advance(60_000);
  assert.equal(await readyOf(plane), 'False');
  assert.equal(plane.startsOf('vm').length, 1);
  const eventsOfVm = () => plane.eventsOf('vm');
  assert.ok(
    (await eventsOfVm()).some((text) =>
      /^Unhealthy Readiness probe failed: .* run a guest agent \(qemu-ga\)/.test(text),
    ),
  );
  assert.ok(
    (await eventsOfVm()).some((text) =>
      /^Unhealthy Liveness probe failed: .* run a guest agent \(qemu-ga\)/.test(text),
    ),
  );
  plane.guest('vm').startAgent();
  await plane.advance(60_000);
  assert.ok((await eventsOfVm()).some((text) => text.includes('on bridge "br-of-nobody"')));
  assert.equal(plane.startsOf('vm').length, 1);
});

const watchdogs: Record<string, { action: string; event: string; starts: number; phase?: string }> = {
  'a watchdog that resets': { action: 'reset', event: 'is restarted', starts: 1 },
  'a watchdog that switches off': { action: 'poweroff', event: 'is switched off', starts: 2 },
  'a watchdog that requests a shutdown': { action: 'shutdown', event: 'is asked to shut down', starts: 2 },
};
for (const [name, { action, event, starts }] of Object.entries(watchdogs)) {
  test(`${name} is reported, and the VM follows its run strategy`, async (t) => {
    const plane = await startVmPlane(t, { nodes: 1 });
    const vm: Loose = aVm('vm', ALWAYS);
    vm.spec.template.spec.domain.devices.watchdog = { name: 'w', i6300esb: { action } };
    await plane.apply(vm);
    plane.guest('vm').expireWatchdog();
    await plane.advance(30_000);
    assert.equal(plane.startsOf('vm').length, starts);
    const message = `WatchdogExpired The guest did not reset its watchdog in time and ${event}.`;
    const events = await plane.eventsOf('vm');
    assert.deepEqual(
      events.filter((text) => text.startsWith('WatchdogExpired')),
      [message],
    );
  });
}
