/** Tests which changes are refused for a VM that a snapshot or a restore holds. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { TrustedWriter } from '#api/validation/hold.ts';
import { aSpec, aVm, CONFIGURATION } from '#api/validation/testing/valid-objects.ts';
import { validateVirtualMachine } from '#api/validation/kinds/validate-virtual-machine.ts';
import { applyMergePatch } from '#kube/patches/merge-patch.ts';

const SNAPSHOT = { snapshotInProgress: 's1' };
const RESTORE = { restoreInProgress: 'r1' };

const STATE_BY_SNAPSHOT = 'spec.runStrategy: Forbidden: Cannot update vm running state until snapshot "s1" completes';
const DISKS = 'spec.template.spec: Forbidden: Cannot update vm disks or volumes until snapshot "s1" completes';
const STATE_BY_RESTORE = 'spec.runStrategy: Forbidden: Cannot update VM runStrategy until restore "r1" completes';
const TEMPLATE = 'spec.template: Forbidden: Cannot update VM template until restore "r1" completes';

interface Case {
  readonly status?: object;
  /** Merge patches of the spec: the stored one, and the change. */
  readonly was?: object;
  readonly change: object;
  readonly writer?: TrustedWriter;
  readonly want?: string[];
}

const domain = (fields: object) => ({ template: { spec: { domain: fields } } });
const cores = domain({ cpu: { cores: 4 } });
const withoutIdentity = domain({ firmware: null, machine: null });
const withIdentity = domain({
  firmware: { uuid: '5d307ca9-b3ef-428c-8861-06e72d69f223', serial: 'x' },
  machine: { type: 'q35' },
});
const [root, seed] = aSpec().volumes ?? [];
const volumes = { template: { spec: { volumes: [{ ...root, persistentVolumeClaim: { claimName: 'other' } }, seed] } } };
const bus = domain({
  devices: {
    disks: [
      { name: 'root', disk: { bus: 'scsi' } },
      { name: 'seed', cdrom: {} },
    ],
  },
});

const { disks = [] } = aSpec().domain.devices ?? {};
const added = {
  template: {
    spec: {
      domain: { devices: { disks: [...disks, { name: 'data', disk: { bus: 'scsi' } }] } },
      volumes: [root, seed, { name: 'data', persistentVolumeClaim: { claimName: 'data', hotpluggable: true } }],
    },
  },
};

const cases: Record<string, Case> = {
  'no hold: adding a volume': { change: added },
  'no hold: stopping, and changing the template': { change: { runStrategy: 'Halted', ...cores } },

  'a snapshot: stopping': { status: SNAPSHOT, change: { runStrategy: 'Halted' }, want: [STATE_BY_SNAPSHOT] },
  'a snapshot: stopping a VM whose guest has not started': {
    status: { ...SNAPSHOT, printableStatus: 'ErrorPvcNotFound' },
    change: { runStrategy: 'Halted' },
  },
  'a snapshot: another strategy of a VM whose guest has not started': {
    status: { ...SNAPSHOT, printableStatus: 'Starting' },
    change: { runStrategy: 'Manual' },
    want: [STATE_BY_SNAPSHOT],
  },
  'a snapshot: starting': {
    status: SNAPSHOT,
    was: { runStrategy: null, running: false },
    change: { running: true },
    want: [STATE_BY_SNAPSHOT],
  },
  'a snapshot: the same strategy in the other field': {
    status: SNAPSHOT,
    was: { runStrategy: null, running: true },
    change: { running: null, runStrategy: 'Always' },
  },
  'a snapshot: changing a volume': { status: SNAPSHOT, change: volumes, want: [DISKS] },
  'a snapshot: adding a volume': { status: SNAPSHOT, change: added, want: [DISKS] },
  'a snapshot: changing the bus of a disk': { status: SNAPSHOT, change: bus, want: [DISKS] },
  'a snapshot: changing strategy and volume': {
    status: SNAPSHOT,
    change: { runStrategy: 'Manual', ...volumes },
    want: [STATE_BY_SNAPSHOT, DISKS],
  },
  'a snapshot: changing a volume as the restore controller': {
    status: SNAPSHOT,
    change: volumes,
    writer: 'restore-controller',
    want: [DISKS],
  },
  'a snapshot: changing something else': { status: SNAPSHOT, change: cores },
  'a snapshot: no change': { status: SNAPSHOT, change: {} },

  'a restore: starting': {
    status: RESTORE,
    was: { runStrategy: 'Halted' },
    change: { runStrategy: 'Always' },
    want: [STATE_BY_RESTORE],
  },
  'a restore: changing the run strategy': {
    status: RESTORE,
    change: { runStrategy: 'Manual' },
    want: [STATE_BY_RESTORE],
  },
  'a restore: stopping, which the restore may wait for': { status: RESTORE, change: { runStrategy: 'Halted' } },
  'a restore: adding a volume': { status: RESTORE, change: added, want: [TEMPLATE] },
  'a restore: changing the template': { status: RESTORE, change: cores, want: [TEMPLATE] },
  'a restore: changing everything as the restore controller': {
    status: RESTORE,
    was: { runStrategy: 'Halted' },
    change: { runStrategy: 'Always', ...cores },
    writer: 'restore-controller',
  },
  'a restore: filling in the identity as a user': {
    status: RESTORE,
    was: withoutIdentity,
    change: withIdentity,
    want: [TEMPLATE],
  },
  'a restore: filling in the identity as the VM controller': {
    status: RESTORE,
    was: withoutIdentity,
    change: withIdentity,
    writer: 'vm-controller',
  },
  'a restore: changing something else as the VM controller': {
    status: RESTORE,
    was: withoutIdentity,
    change: applyMergePatch(withIdentity, cores) as object,
    writer: 'vm-controller',
    want: [TEMPLATE],
  },
};

for (const [name, { status, was = {}, change, writer, want = [] }] of Object.entries(cases)) {
  test(name, () => {
    const old = aVm({ spec: was, status });
    const vm = applyMergePatch(structuredClone(old), { spec: change }) as typeof old;
    const errors = validateVirtualMachine(vm, { configuration: CONFIGURATION, old, writer });
    assert.deepEqual(
      errors.map(({ field, message }) => `${field}: ${message}`),
      want,
    );
  });
}

test('the status in the request does not count, only the stored status', () => {
  const vm = aVm({ status: SNAPSHOT, spec: { runStrategy: 'Halted' } });
  assert.deepEqual(validateVirtualMachine(vm, { configuration: CONFIGURATION, old: aVm() }), []);
});
