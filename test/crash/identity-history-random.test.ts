/**
 * Random sequences of everything that may change the identity of a VM: edits of its template, disks and interfaces that
 * are added and removed, starts, migrations, snapshots, restores and transitions, with kills of the server. Whenever the
 * plane has settled, replaying the new history entries on the old record yields the new record, and a running guest has
 * the firmware UUID of the record. SELFSAME_TEST_SEED repeats a run.
 */
import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { inspect } from 'node:util';
import { array, assert as check, asyncProperty, boolean, constantFrom, nat, option, record } from 'fast-check';
import { buildIdentityState, replayChanges, type IdentityState } from '#api/identity/identity-changes.ts';
import { summarizeIdentity } from '#api/identity/identity-table.ts';
import { isRestoreFinished } from '#api/virtual-machine-restore/kind.ts';
import { FULL_RUN } from '#test/support/full-run.ts';
import { aMigration } from '#test/support/migrating-vm.ts';
import { withoutFirmwareUuid } from '#test/support/old-objects.ts';
import { aRestore, aSnapshot } from '#test/support/snapshots.ts';
import type { Loose } from '#test/support/test-api.ts';
import { TransitionScene } from '#test/support/transition-scene.ts';
import { aNetworkDefinition } from '#test/support/secondary-networks.ts';
import { aClaim, aVm, KERNEL, startVmPlane, type VmPlane } from '#test/support/vm-plane.ts';

const RUNS = FULL_RUN ? 12 : 1;
const STEPS = FULL_RUN ? 40 : 10;
const TIMEOUT_MS = FULL_RUN ? 1_800_000 : 60_000;
const VM = 'db';
const VMS = '/apis/kubevirt.io/v1/namespaces/default/virtualmachines';
const SUBRESOURCES = '/apis/subresources.kubevirt.io/v1/namespaces/default';
const ALICE = { name: 'alice', groups: ['system:masters', 'system:authenticated'] };
const MACHINES = ['pc-q35-rhel8.2.0', 'pc-q35-6.2', 'q35', 'pc-q35-rhel8.2.0'];
const DISKS = ['b', 'c'];
const NICS = ['lan', 'wan'];
/** Longer than any wait for a target that stops, or for a node. */
const LONGEST_WAIT_MS = 330_000;

interface World {
  readonly plane: VmPlane;
  /** A number of the sequence, from which names and values are made. */
  readonly n: number;
  count: number;
}

type Step = (world: World) => Promise<unknown>;

async function edit({ plane }: World, change: (spec: Loose) => void): Promise<void> {
  const { spec } = await plane.get('VirtualMachine', VM);
  change(spec.template.spec);
  const body = { spec: { template: { spec: spec.template.spec } } };
  await plane.call('PATCH', `${VMS}/${VM}`, { body, user: ALICE });
}

const mac = (n: number) => `02:00:00:00:00:${(n % 200).toString(16).padStart(2, '0')}`;
const toggle = (list: Loose[], name: string, made: () => Loose): Loose[] =>
  list.some((one) => one.name === name) ? list.filter((one) => one.name !== name) : [...list, made()];
/** Restarts the VM, or starts it if a restore or a stop has left it halted. */
async function restart({ plane }: Pick<World, 'plane'>): Promise<void> {
  if ((await plane.beginVerb('restart', VM)) !== '202') await plane.beginVerb('start', VM);
}
const setFirmware = (world: World, values: Loose) =>
  edit(world, ({ domain }) => Object.assign(domain.firmware, values));
const setNic = (world: World, values: Loose) =>
  edit(world, ({ domain }) => Object.assign(domain.devices.interfaces[0], values));

async function callVolumeVerb({ plane, n }: World, resource: string, what: string): Promise<void> {
  const name = DISKS[n % DISKS.length]!;
  const body =
    what === 'removevolume'
      ? { name }
      : {
          name,
          disk: { name, disk: { bus: n % 2 === 0 ? 'scsi' : 'virtio' } },
          volumeSource: { persistentVolumeClaim: { claimName: name } },
        };
  await plane.call('PUT', `${SUBRESOURCES}/${resource}/${VM}/${what}`, { body, user: ALICE });
}

const steps: Readonly<Record<string, Step>> = {
  uuid: (world) => setFirmware(world, { uuid: `00000000-0000-4000-8000-${String(world.n).padStart(12, '0')}` }),
  serial: (world) => setFirmware(world, { serial: `S-${world.n}` }),
  mac: (world) => setNic(world, { macAddress: mac(world.n) }),
  noMac: (world) => setNic(world, { macAddress: null }),
  absentNic: (world) => setNic(world, { state: world.n % 2 === 0 ? 'absent' : 'up' }),
  bootOrder: (world) =>
    edit(world, ({ domain }) => {
      for (const [i, disk] of domain.devices.disks.entries()) disk.bootOrder = ((i + world.n) % 4) + 1;
    }),
  machine: (world) => edit(world, ({ domain }) => Object.assign(domain.machine, { type: MACHINES[world.n % 4] })),
  disk: (world) =>
    edit(world, (spec) => {
      const name = DISKS[world.n % DISKS.length]!;
      const { devices } = spec.domain;
      devices.disks = toggle(devices.disks, name, () => ({ name, disk: { bus: 'virtio' } }));
      spec.volumes = toggle(spec.volumes, name, () => ({ name, persistentVolumeClaim: { claimName: name } }));
    }),
  nic: (world) =>
    edit(world, (spec) => {
      const name = NICS[world.n % NICS.length]!;
      const { devices } = spec.domain;
      const own = world.n % 3 === 0 ? { macAddress: mac(world.n + 1) } : {};
      devices.interfaces = toggle(devices.interfaces, name, () => ({ name, bridge: {}, ...own }));
      spec.networks = toggle(spec.networks, name, () => ({ name, multus: { networkName: name } }));
    }),
  rng: (world) => edit(world, ({ domain }) => Object.assign(domain.devices, { rng: world.n % 2 === 0 ? {} : null })),
  tpm: (world) =>
    edit(world, ({ domain }) => Object.assign(domain.devices, { tpm: { persistent: world.n % 2 === 0 } })),
  plug: (world) => callVolumeVerb(world, 'virtualmachines', 'addvolume'),
  unplug: (world) => callVolumeVerb(world, 'virtualmachines', 'removevolume'),
  plugUntilStop: (world) => callVolumeVerb(world, 'virtualmachineinstances', 'addvolume'),
  restart,
  stop: ({ plane }) => plane.beginVerb('stop', VM),
  migrate: (world) => world.plane.post(aMigration(`move-${++world.count}`, VM)),
  snapshot: (world) => world.plane.post(aSnapshot(`shot-${++world.count}`, VM)),
  async restore(world) {
    const taken = (await world.plane.list('VirtualMachineSnapshot')).filter(({ status }) => status?.readyToUse);
    if (taken.length === 0) return;
    const { name } = taken[world.n % taken.length].metadata;
    const policy = { targetReadinessPolicy: 'StopTarget' };
    await world.plane.post(aRestore(`back-${++world.count}`, VM, name, policy));
  },
  async transition({ plane }) {
    const scene = await TransitionScene.create(plane, { glob: '*rhel-8.*', name: VM, restartNow: true });
    await scene.run();
  },
  replace: async ({ plane }) => {
    const existing = await plane.get('VirtualMachine', VM);
    await plane.call('PUT', `${VMS}/${VM}`, { body: withoutFirmwareUuid(existing), user: ALICE });
  },
};
const NAMES = [...Object.keys(steps), 'restart', 'uuid', 'migrate', 'restore', 'snapshot'];

const aMachine = () =>
  aVm(
    VM,
    { runStrategy: 'Always' },
    {
      domain: {
        machine: { type: 'q35' },
        memory: { guest: '256Mi' },
        firmware: { bootloader: { efi: { secureBoot: false, persistent: true } }, kernelBoot: KERNEL },
        devices: { tpm: { persistent: true }, disks: [{ name: 'root', disk: { bus: 'virtio' } }] },
      },
      volumes: [{ name: 'root', persistentVolumeClaim: { claimName: 'root' } }],
    },
  );

interface HistoryCheck {
  readonly state: IdentityState;
  readonly history: readonly Loose[];
}

/** Asserts that the entries since the last check lead to the record; returns the state for the next check. */
async function checkHistory(plane: VmPlane, before: HistoryCheck): Promise<HistoryCheck> {
  const [vm, found] = [await plane.get('VirtualMachine', VM), await plane.get('VirtualMachineIdentity', VM)];
  const { history = [], recorded } = found.status ?? {};
  assert.deepEqual(recorded, found.spec, 'the history accounts for the spec');
  const added = newEntries(before.history, history);
  const state = buildIdentityState(found.spec, found.status);
  const replayed = added.reduce<IdentityState>((now, { changes }) => replayChanges(now, changes), before.state);
  assert.deepEqual(plain(replayed), plain(state), added.map(({ what }) => what).join('\n'));
  for (const { at, cause, changes } of added) {
    assert.ok(at && cause, 'when and why');
    assert.ok(changes.length > 0 || cause.startsWith('VirtualMachineRestore '), `${cause} changed something`);
  }
  assert.equal(summarizeIdentity(vm, found).unchangedSince, history.at(-1).at);
  for (const { definition } of plane.guests(VM)) {
    assert.equal(definition.firmware.uuid, found.spec.firmware.uuid, 'the guest has the firmware UUID of the record');
  }
  return { state, history };
}

const plain = (state: IdentityState): unknown => JSON.parse(JSON.stringify(Object.fromEntries(state)));

/** Returns the entries after the old ones, the oldest of which may have been dropped. */
function newEntries(old: readonly Loose[], history: readonly Loose[]): readonly Loose[] {
  const texts = old.map((entry) => JSON.stringify(entry));
  const kept = history.findLastIndex((entry) => JSON.stringify(entry) === texts.at(-1)) + 1;
  assert.deepEqual(
    history.slice(0, kept).map((entry) => JSON.stringify(entry)),
    texts.slice(texts.length - kept),
  );
  assert.ok(old.length === 0 || kept > 0, 'the old entries are still there');
  return history.slice(kept);
}

async function isBusy(plane: VmPlane): Promise<boolean> {
  const restores = await plane.list('VirtualMachineRestore');
  const moves = await plane.list('VirtualMachineInstanceMigration');
  return (
    restores.some((restore) => !isRestoreFinished(restore)) ||
    moves.some(({ status }) => status?.phase !== 'Succeeded' && status?.phase !== 'Failed')
  );
}

interface PlannedStep {
  readonly what: string;
  readonly n: number;
  /** The server is killed after this number of writes. */
  readonly cut: number | null;
  /** Restarts the VM afterwards: most changes take effect at the next start. */
  readonly restarts: boolean;
}

async function runSequence(t: TestContext, sequence: readonly PlannedStep[]): Promise<void> {
  const plane = await startVmPlane(t);
  try {
    for (const name of ['root', ...DISKS]) {
      await plane.beginApply(aClaim(name, { storageClassName: 'shared', accessModes: ['ReadWriteMany'] }));
    }
    for (const name of NICS) await plane.beginApply(aNetworkDefinition(name));
    await plane.apply(aMachine());
    let checked = await checkHistory(plane, { state: new Map(), history: [] });
    const world = { plane, count: 0 };
    for (const { what, n, cut, restarts } of sequence) {
      const lost = cut === null ? undefined : plane.cutAfter(cut);
      const work = async () => {
        const given = { ...world, n };
        await steps[what]?.(given);
        world.count = given.count;
        await plane.settle();
        if (restarts) await restart(world);
        await plane.settle();
      };
      if (lost === undefined) await work();
      else {
        await Promise.race([work().catch(() => undefined), lost]);
        world.count++;
        await plane.restartServer();
      }
      await plane.settle();
      if (await isBusy(plane)) await plane.advance(LONGEST_WAIT_MS);
      checked = await checkHistory(plane, checked).catch((error: unknown) => {
        throw new Error(`after ${what} ${n}`, { cause: error });
      });
    }
  } finally {
    await plane.stop();
  }
}

test('replaying the history yields the record, after any sequence of changes', { timeout: TIMEOUT_MS }, async (t) => {
  const given = process.env['SELFSAME_TEST_SEED'];
  const sequences = array(
    record({
      what: constantFrom(...NAMES),
      n: nat({ max: 999 }),
      cut: option(nat({ max: 16 }), { freq: 2 }),
      restarts: boolean(),
    }),
    { minLength: STEPS, maxLength: STEPS },
  );
  const seed = given === undefined ? {} : { seed: Number(given) };
  await check(
    asyncProperty(sequences, async (sequence) => {
      try {
        await runSequence(t, sequence);
      } catch (error) {
        // fast-check prints the sequence, but not the error.
        t.diagnostic(inspect(error));
        throw error;
      }
    }),
    { numRuns: RUNS, endOnFailure: true, ...seed },
  );
});
