/**
 * Real guests come from one machine type to the next: virtctl makes the Job, an agent runs it, and the guests say what they
 * see. But for the type they are the selfsame machines.
 */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { promisify } from 'node:util';
import { GUEST_IMAGE } from '#api/names.ts';
import { VIRTUAL_MACHINES, type VirtualMachine } from '#api/virtual-machine/kind.ts';
import type { GuestReport } from '#test/support/guest-report.ts';
import { startRealPlane, type RealPlane } from '#test/support/real-guests.ts';

const namespace = 'default';
const virtctl = new URL('../../virtctl', import.meta.url).pathname;
const [OLD, NEW] = ['pc-q35-6.2', 'pc-q35-7.2'];
const cleanUps: (() => unknown)[] = [];
let plane: RealPlane;

before(async () => {
  plane = await startRealPlane({ after: (fn) => void cleanUps.unshift(fn) });
});

after(async () => {
  for (const cleanUp of cleanUps) await cleanUp();
});

async function run(...args: string[]): Promise<string> {
  const { stdout } = await promisify(execFile)(virtctl, ['--kubeconfig', join(plane.dataDir, 'kubeconfig'), ...args]);
  return stdout;
}

function aVm(name: string, runStrategy: 'Always' | 'Halted', labels: Record<string, string>): VirtualMachine {
  return {
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachine',
    metadata: { name, namespace, labels },
    spec: {
      runStrategy,
      template: {
        spec: {
          domain: {
            machine: { type: OLD },
            memory: { guest: '128Mi' },
            firmware: { kernelBoot: { kernelArgs: 'console=ttyS0 quiet', container: { image: GUEST_IMAGE } } },
            devices: {
              disks: ['a', 'b'].map((disk) => ({ name: disk, serial: disk, disk: { bus: 'virtio' as const } })),
              interfaces: [{ name: 'default', masquerade: {} }],
            },
          },
          networks: [{ name: 'default', pod: {} }],
          volumes: ['a', 'b'].map((disk) => ({ name: disk, emptyDisk: { capacity: '1Mi' } })),
        },
      },
    },
  };
}

/** All but the machine type, and what is of one boot. */
function selfsame({ facts, pci, disks, nics }: GuestReport) {
  const { uuid, serial, cpus } = facts;
  return { uuid, serial, cpus, pci, nics, disks: disks.map(({ pci: at, serial: id }) => [id, at]).sort() };
}

const typeOf = ({ spec }: VirtualMachine) => spec.template?.spec?.domain.machine?.type ?? '';
const markOf = ({ status }: VirtualMachine) => status?.machineTypeRestartRequired;
const vm = (name: string) => plane.client.get(VIRTUAL_MACHINES, { namespace, name });

test('running and stopped VMs come to the next machine type', { timeout: 600_000 }, async () => {
  for (const [name, strategy] of [
    ['runs', 'Always'],
    ['stands', 'Halted'],
  ] as const) {
    await plane.create(VIRTUAL_MACHINES, aVm(name, strategy, { wave: 'one' }));
  }
  const before = await plane.guest('runs').boots();
  assert.equal(before.facts['machine'], OLD);
  const plan = await run('update', 'machine-types', 'pc-q35-6.*', '--label-selector', 'wave=one', '--dry-run');
  assert.match(plan, /runs/);
  assert.match(plan, /stands/);
  assert.equal(typeOf(await vm('runs')), OLD, 'a dry run changes nothing');

  await run('update', 'machine-types', 'pc-q35-6.*', '--label-selector', 'wave=one');
  await plane.guest('runs').untilVm('is marked', (one) => markOf(one) === true);
  assert.equal(typeOf(await vm('runs')), '');
  await plane.guest('stands').untilVm('is cleared', (one) => typeOf(one) === '');
  assert.match(await run('update', 'machine-types', 'list'), /runs/);
  assert.equal(markOf(await vm('stands')), undefined);
  assert.equal((await plane.guest('runs').vmi()).status?.machine?.type, OLD, 'nobody restarted it');

  await plane.put('virtualmachines/runs/restart');
  const again = await plane.guest('runs').boots({ afterBootId: before.facts['bootid'] ?? '' });
  assert.equal(again.facts['machine'], NEW);
  assert.deepEqual(selfsame(again), selfsame(before));
  await plane.guest('runs').untilVm('is not marked any more', (one) => markOf(one) === false);
  await plane.put('virtualmachines/stands/start');
  assert.equal((await plane.guest('stands').boots()).facts['machine'], NEW);
});

test('with --restart-now they are restarted, once', { timeout: 600_000 }, async () => {
  await plane.create(VIRTUAL_MACHINES, aVm('hurries', 'Always', { wave: 'two' }));
  const before = await plane.guest('hurries').boots();
  const { uid } = (await plane.guest('hurries').vmi()).metadata;
  const flags = ['--label-selector', 'wave=two', '--restart-now', '--wait'];
  await run('update', 'machine-types', 'pc-q35-6.*', ...flags);
  const vmi = await plane.guest('hurries').vmi();
  assert.notEqual(vmi.metadata.uid, uid);
  assert.equal(vmi.status?.machine?.type, NEW);
  assert.notEqual(markOf(await vm('hurries')), true);
  const again = await plane.guest('hurries').boots({ afterBootId: before.facts['bootid'] ?? '' });
  assert.deepEqual(selfsame(again), selfsame(before));
  const supported = await run('update', 'machine-types', 'supported');
  assert.match(supported, new RegExp(NEW));
});
