import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Edit, IDENTITY_EDITS_ANNOTATION } from '#api/identity/identity-edits.ts';
import type { ChangeCause } from '#api/identity/identity-history.ts';
import { LEGACY_RULE, legacyUuid } from '#api/identity/legacy-uuid.ts';
import type { VirtualMachine } from '#api/virtual-machine/kind.ts';
import type { IdentityChange } from '#api/virtual-machine-identity/kind.ts';
import { type CauseContext, createCauseFinder, startCause } from '#controllers/device-map/change-cause.ts';
import type { Stored } from '#kube/meta.ts';

const [EARLY, THEN, LATER] = ['2026-01-01T00:00:00Z', '2026-01-02T00:00:00Z', '2026-01-03T00:00:00Z'];
const EDIT = { cause: 'edit of the VM', by: 'alice' };
const START = startCause('vmi-2');
const RAN = { cause: 'a change while it ran' };
const disk = { id: 'disk-a', type: 'disk', device: 'disk' };
const UUID = { field: 'firmware.uuid', from: 'u1', to: 'u2' };
const TYPE = { field: 'machine.type', from: 'pc-q35-6.2', to: 'pc-q35-7.2' };
const ADDRESS = { field: 'devices.disk-a.address', from: { type: 'pci' }, to: { type: 'isa' } };
const PORT = { field: 'devices.rp0.address', from: { type: 'pci' }, to: { type: 'isa' } };

const aVm = (edits: Record<string, Edit>, domain: object = {}): Stored<VirtualMachine> =>
  ({
    metadata: { name: 'db', annotations: { [IDENTITY_EDITS_ANNOTATION]: JSON.stringify(edits) } },
    spec: { template: { spec: { domain } } },
  }) as unknown as Stored<VirtualMachine>;

interface Case extends Partial<CauseContext> {
  readonly edits?: Record<string, Edit>;
  readonly domain?: object;
  readonly change: IdentityChange;
  /** Other changes of the same write. */
  readonly others?: readonly IdentityChange[];
  readonly want: ChangeCause;
}

const by = (at: string): Edit => ({ at, by: 'alice' });

const cases: Record<string, Case> = {
  'a uuid that a user edited': { edits: { 'firmware.uuid': by(EARLY) }, change: UUID, want: EDIT },
  'a uuid without a recorded edit': { change: UUID, want: { cause: 'edit of the VM' } },
  'a uuid that a restore wrote': {
    edits: { 'firmware.uuid': { at: THEN, cause: 'VirtualMachineRestore back' } },
    change: UUID,
    want: { cause: 'VirtualMachineRestore back' },
  },
  'a legacy uuid': {
    change: { field: 'firmware.uuid', to: legacyUuid('db') },
    isNew: true,
    want: { cause: LEGACY_RULE },
  },
  'a new record': {
    edits: { created: by(EARLY) },
    change: { field: 'firmware.uuid', to: 'u' },
    isNew: true,
    want: { cause: 'first start', by: 'alice' },
  },
  'a MAC address of a new interface': {
    edits: { 'interfaces.lan': by(THEN) },
    change: { field: 'interfaces.lan.macAddress', to: 'x' },
    want: EDIT,
  },
  'a MAC address that an older version did not record': {
    change: { field: 'interfaces.lan.macAddress', to: 'x' },
    want: { cause: 'recorded for the first time' },
  },
  'a machine type of the template': {
    edits: { 'machine.type': by(EARLY) },
    domain: { machine: { type: TYPE.to } },
    change: TYPE,
    want: EDIT,
  },
  'the type of an alias since its edit': {
    edits: { 'machine.type': by(LATER) },
    domain: { machine: { type: 'q35' } },
    change: TYPE,
    want: EDIT,
  },
  'the type of an alias on another node, long after its edit': {
    edits: { 'machine.type': by(EARLY) },
    domain: { machine: { type: 'q35' } },
    change: TYPE,
    want: START,
  },
  'an address of another chipset': {
    edits: { 'machine.type': by(LATER) },
    change: PORT,
    others: [{ field: 'machine.type', from: 'pc-i440fx-7.2', to: 'pc-q35-7.2' }],
    want: EDIT,
  },
  'an address without an edit': { edits: { 'disks.a': by(EARLY) }, change: ADDRESS, want: START },
  'an address after an edit of the disk': { edits: { 'disks.a': by(LATER) }, change: ADDRESS, want: EDIT },
  'a disk of the template': {
    edits: { 'disks.a': by(LATER) },
    domain: { devices: { disks: [{ name: 'a' }] } },
    change: { field: 'devices.disk-a', to: disk },
    occasion: RAN,
    want: EDIT,
  },
  'a disk that the template does not have': {
    change: { field: 'devices.disk-a', to: disk },
    occasion: RAN,
    want: { cause: 'hotplug for this run of the VM' },
  },
  'a claim to which a migration handed over the state': {
    change: { field: 'stateClaim', from: 'one', to: 'two' },
    handOver: { claim: 'two', migration: 'move' },
    want: { cause: 'migration move' },
  },
  'a claim at a start': { change: { field: 'stateClaim', to: 'one' }, instance: 'vmi-2', want: START },
  'everything in the first reading of a guest': {
    edits: { 'disks.a': by(LATER), 'machine.type': by(LATER) },
    change: { field: 'devices.disk-a', to: disk },
    isFirstSeen: true,
    want: START,
  },
};

for (const [title, { edits = {}, domain, change, others = [], want, ...more }] of Object.entries(cases)) {
  test(`cause: ${title}`, () => {
    const history = [
      { at: EARLY, changes: [] },
      { at: THEN, changes: [TYPE, ADDRESS] },
    ];
    const context = { vm: aVm(edits, domain), history, isNew: false, isFirstSeen: false, occasion: START, ...more };
    assert.deepEqual(createCauseFinder(context, [change, ...others])(change), want);
  });
}
