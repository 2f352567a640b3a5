/** A real guest with the QEMU guest agent: the data that it reports, frozen file systems, and probes. One guest for all tests. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { promisify } from 'node:util';
import { GUEST_IMAGE } from '#api/names.ts';
import type { VirtualMachineInstance } from '#api/virtual-machine-instance/kind.ts';
import { VIRTUAL_MACHINES, type VirtualMachine } from '#api/virtual-machine/kind.ts';
import {
  isSnapshotFinished,
  VIRTUAL_MACHINE_SNAPSHOTS,
  type VirtualMachineSnapshot,
} from '#api/virtual-machine-snapshot/kind.ts';
import { systemClock } from '#lib/clock.ts';
import { isTrue } from '#kube/conditions.ts';
import { PERSISTENT_VOLUME_CLAIMS } from '#kube/core-kinds.ts';
import { apiVersionOf } from '#kube/meta.ts';
import { startRealPlane, type RealGuest, type RealPlane } from '#test/support/real-guests.ts';
import type { Loose } from '#test/support/test-api.ts';

const cleanUps: (() => unknown)[] = [];
let plane: RealPlane;
let guest: RealGuest;

/** Guests are slow on a busy machine; each wait has its own limit and message. */
const SLOW = { timeout: 600_000 };
const metadata = (name: string) => ({ name, namespace: 'default' });
/** The delay is long because a guest boots slowly on a busy machine. */
const livenessProbe = { tcpSocket: { port: 7777 }, initialDelaySeconds: 90, periodSeconds: 1, failureThreshold: 30 };
const VM: VirtualMachine = {
  apiVersion: 'kubevirt.io/v1',
  kind: 'VirtualMachine',
  metadata: metadata('vm'),
  spec: {
    runStrategy: 'Always',
    template: {
      spec: {
        terminationGracePeriodSeconds: 10,
        readinessProbe: { httpGet: { path: '/healthz', port: 8080 }, periodSeconds: 1, timeoutSeconds: 5 },
        livenessProbe,
        domain: {
          memory: { guest: '192Mi' },
          firmware: {
            kernelBoot: {
              container: { image: GUEST_IMAGE },
              kernelArgs: 'console=ttyS0 quiet no_timer_check guest.cmd=serve',
            },
          },
          devices: { disks: [{ name: 'data', disk: { bus: 'virtio' } }] },
        },
        volumes: [{ name: 'data', persistentVolumeClaim: { claimName: 'data' } }],
      },
    },
  },
};

before(async () => {
  plane = await startRealPlane(
    { after: (fn) => void cleanUps.unshift(fn) },
    { nodes: 1, flags: ['--guest-subnets', 'none'] },
  );
  await plane.create(PERSISTENT_VOLUME_CLAIMS, {
    apiVersion: 'v1',
    kind: 'PersistentVolumeClaim',
    metadata: metadata('data'),
    spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '64Mi' } } },
  });
  await plane.create(VIRTUAL_MACHINES, VM);
  guest = plane.guest('vm');
  await guest.awaitBoot();
}, SLOW);

after(async () => {
  for (const cleanUp of cleanUps) await cleanUp();
});

const has = (type: string) => (vmi: VirtualMachineInstance | undefined) => isTrue(vmi?.status?.conditions, type);
const read = (what: string): Promise<Loose> => plane.read(`virtualmachineinstances/vm/${what}`);

test('the guest is ready when it answers over HTTP', SLOW, async () => {
  await guest.awaitVmi('it is ready', has('Ready'));
});

test('its agent reports its system, addresses, users and file systems', SLOW, async () => {
  await guest.awaitVmi('its agent is connected', has('AgentConnected'));
  await guest.awaitVmi('it has an address', (vmi) => vmi?.status?.interfaces?.[0]?.ipAddress === '10.0.2.15');
  const { status } = await guest.vmi();
  assert.equal(status?.guestOSInfo?.id, 'selfsame-guest');
  assert.equal(status?.interfaces?.[0]?.infoSource, 'domain, guest-agent');
  assert.equal((await read('guestosinfo')).hostname, 'selfsame-guest');
  const [user] = (await read('userlist')).items;
  assert.equal(user.userName, 'root');
  await guest.runCommand('mkfs vda', /GUEST mounted vda/);
  const [disk] = (await read('filesystemlist')).items;
  assert.deepEqual([disk.mountPoint, disk.fileSystemType, disk.disk[0].busType], ['/data', 'ext4', 'virtio']);
});

const selfsame = new URL('../../selfsame', import.meta.url).pathname;

/** Calls the host API of the node with the command-line client. */
async function host(...words: string[]): Promise<string> {
  const { stdout } = await promisify(execFile)(selfsame, ['host', '--data-dir', plane.dataDir, ...words]);
  return stdout;
}

/** Returns the table of the host when it matches the pattern. */
async function tableWith(pattern: RegExp): Promise<string> {
  const end = systemClock.elapsed() + 60_000;
  for (;;) {
    const table = await host('list', 'table');
    if (pattern.test(table)) return table;
    assert.ok(systemClock.elapsed() < end, `no ${pattern} in\n${table}`);
  }
}

test('the host table shows its address, and a star while QEMU does not answer', SLOW, async () => {
  const table = await tableWith(/10\.0\.2\.15/);
  const { uid } = (await guest.vmi()).metadata;
  assert.deepEqual(
    table.split('\n').map((line) => line.split(/ {2,}/)),
    [['vmId', 'vmName', 'Status', 'IP'], [uid, 'default/vm', 'Up', '10.0.2.15'], ['']],
  );
  const [, pid] = /pid = (\d+)/.exec(await host('getAllVmStats')) ?? [];
  process.kill(Number(pid), 'SIGSTOP');
  try {
    await tableWith(/ Up\*/);
    assert.match(await host('getAllVmStats'), /monitorResponse = -1/);
  } finally {
    process.kill(Number(pid), 'SIGCONT');
  }
  await tableWith(/ Up /);
});

test('a snapshot freezes its file systems, and the guest can write afterwards', SLOW, async () => {
  const type = VIRTUAL_MACHINE_SNAPSHOTS;
  const source = { apiGroup: 'kubevirt.io', kind: 'VirtualMachine', name: 'vm' };
  const snapshot: VirtualMachineSnapshot = {
    apiVersion: apiVersionOf(type),
    kind: type.kind,
    metadata: metadata('snap'),
    spec: { source },
  };
  await plane.create(type, snapshot);
  const taken = await plane.awaitObject(type, 'snap', (object) => object !== undefined && isSnapshotFinished(object));
  assert.deepEqual(taken?.status?.indications, ['Online', 'GuestAgent'], JSON.stringify(taken?.status));
  assert.equal(taken?.status?.phase, 'Succeeded');
  await guest.runCommand('append /data/after snapshot', /GUEST appended/);
});

/** Calls virtctl and returns its standard output. */
async function virtctl(...words: string[]): Promise<string> {
  const program = new URL('../../virtctl', import.meta.url).pathname;
  const argv = ['--kubeconfig', join(plane.dataDir, 'kubeconfig'), ...words];
  return (await promisify(execFile)(program, argv)).stdout;
}

test('virtctl takes a snapshot and clones the running guest, each to the end', SLOW, async () => {
  const taken = await virtctl('snapshot', 'vm', '--name=verb', '--wait');
  assert.match(taken, /^Snapshot verb of VM vm was created\nSnapshot verb is ready; .*Online, GuestAgent\n$/);
  const cloned = await virtctl('clone', 'vm', 'copy', '--wait');
  const [, uuid] = /\nVM copy is a clone of VM vm; firmware uuid ([\w-]+);/.exec(cloned) ?? [];
  const copy = await plane.awaitObject(VIRTUAL_MACHINES, 'copy', (object) => object !== undefined);
  assert.equal(copy?.spec.template.spec?.domain.firmware?.uuid, uuid, cloned);
  assert.notEqual((await guest.vmi()).spec.domain.firmware?.uuid, uuid);
  await guest.runCommand('append /data/after clone', /GUEST appended/);
});

test('virtctl plugs and unplugs a disk, and waits for the guest', SLOW, async () => {
  const added = await virtctl('addvolume', 'vm', '--volume-name=copy-data', '--disk-name=more', '--wait');
  assert.match(added, /\nVolume more is plugged into VM vm\n$/);
  const removed = await virtctl('removevolume', 'vm', '--volume-name=more', '--wait');
  assert.match(removed, /\nVolume more is unplugged from VM vm\n$/);
});

test('a frozen guest writes nothing until the timeout', SLOW, async () => {
  await plane.put('virtualmachineinstances/vm/freeze', { unfreezeTimeout: '5s' });
  await guest.awaitVmi('the guest is reported as frozen', (vmi) => vmi?.status?.fsFreezeStatus === 'frozen');
  // The guest answers only when its file system is no longer frozen.
  await guest.runCommand('append /data/after freeze', /GUEST appended/);
  const frozen = await read('guestosinfo');
  assert.equal(frozen.fsFreezeStatus, undefined);
});

test('a guest that no longer answers is not ready, and is stopped and started again', SLOW, async () => {
  const { uid } = (await guest.vmi()).metadata;
  await guest.runCommand('unserve', /GUEST serves no more/);
  await guest.awaitVmi('there is another instance', (vmi) => vmi !== undefined && vmi.metadata.uid !== uid);
  await guest.awaitVmi('it is ready again', has('Ready'));
});
