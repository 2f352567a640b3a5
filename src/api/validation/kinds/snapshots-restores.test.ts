/** Tests the validation of VirtualMachineSnapshots and VirtualMachineRestores. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { aRestore, aSnapshot } from '#api/validation/testing/valid-objects.ts';
import { validateVirtualMachineRestore } from '#api/validation/kinds/validate-virtual-machine-restore.ts';
import { validateVirtualMachineSnapshot } from '#api/validation/kinds/validate-virtual-machine-snapshot.ts';
import type { FieldError } from '#kube/field-error.ts';

const texts = (errors: FieldError[]) => errors.map(({ field, message }) => `${field}: ${message}`);
const IMMUTABLE = ['spec: Forbidden: spec in immutable after creation'];
const DEADLINE = 'must be a duration (e.g. 5m, 1h30m, 90s), or 0 for no deadline';

/** Merge patches of the spec of a valid object, and of the stored object in `old`. */
const snapshots: Record<string, { spec: object; old?: object; want?: string[] }> = {
  'a valid snapshot': { spec: {} },
  'no group': { spec: { source: { apiGroup: null } } },
  'another group': {
    spec: { source: { apiGroup: 'apps' } },
    want: ['spec.source.apiGroup: Unsupported value: "apps": supported values: "kubevirt.io"'],
  },
  'an empty group': {
    spec: { source: { apiGroup: '' } },
    want: ['spec.source.apiGroup: Unsupported value: "": supported values: "kubevirt.io"'],
  },
  'another kind': {
    spec: { source: { kind: 'VirtualMachineInstance' } },
    want: ['spec.source.kind: Unsupported value: "VirtualMachineInstance": supported values: "VirtualMachine"'],
  },
  'no name': { spec: { source: { name: '' } }, want: ['spec.source.name: Required value'] },
  'a deadline': { spec: { failureDeadline: '1h30m' } },
  'no deadline': { spec: { failureDeadline: '0' } },
  'an invalid deadline': {
    spec: { failureDeadline: 'soon' },
    want: [`spec.failureDeadline: Invalid value: "soon": ${DEADLINE}`],
  },
  'a negative deadline': {
    spec: { failureDeadline: '-5m' },
    want: [`spec.failureDeadline: Invalid value: "-5m": ${DEADLINE}`],
  },
  'unknown fields': {
    spec: { deadline: '5m', source: { namespace: 'x' } },
    want: ['spec.source.namespace: Forbidden: unknown field', 'spec.deadline: Forbidden: unknown field'],
  },
  'no change': { spec: {}, old: {} },
  'a change of the spec': { spec: { failureDeadline: '1m' }, old: {}, want: IMMUTABLE },
  'an unchanged spec with an unknown field': { spec: { deadline: '5m' }, old: { deadline: '5m' } },
};

for (const [name, { spec, old, want = [] }] of Object.entries(snapshots)) {
  test(`snapshot: ${name}`, () => {
    const context = old === undefined ? {} : { old: aSnapshot({ spec: old }) };
    assert.deepEqual(texts(validateVirtualMachineSnapshot(aSnapshot({ spec }), context)), want);
  });
}

const restores: Record<string, { spec: object; old?: object; unfinished?: string[]; want?: string[] }> = {
  'a valid restore': { spec: {} },
  'another kind of target': {
    spec: { target: { kind: 'Pod', apiGroup: null } },
    want: ['spec.target.kind: Unsupported value: "Pod": supported values: "VirtualMachine"'],
  },
  'no snapshot': {
    spec: { virtualMachineSnapshotName: '' },
    want: ['spec.virtualMachineSnapshotName: Required value'],
  },
  'an unknown field': { spec: { to: 'x' }, want: ['spec.to: Forbidden: unknown field'] },
  'another unfinished restore': {
    spec: {},
    unfinished: ['r0'],
    want: ['spec.target: Forbidden: VirtualMachineRestore "r0" in progress'],
  },
  'the same restore is unfinished': { spec: {}, unfinished: ['r1'] },
  'another unfinished restore, and a change of labels': { spec: {}, old: {}, unfinished: ['r0'] },
  'a change of the snapshot': { spec: { virtualMachineSnapshotName: 's2' }, old: {}, want: IMMUTABLE },
  'overrides of volumes': {
    spec: {
      volumeRestoreOverrides: [
        { volumeName: 'root', restoreName: 'db-root', labels: { a: 'b' }, annotations: { a: 'b c' } },
        { volumeName: 'seed' },
      ],
    },
  },
  'invalid overrides of volumes': {
    spec: {
      volumeRestoreOverrides: [
        { volumeName: 'root', restoreName: 'a' },
        { volumeName: 'root', restoreName: 'a' },
        { volumeName: '' },
      ],
    },
    want: [
      'spec.volumeRestoreOverrides[1].volumeName: Duplicate value: "root"',
      'spec.volumeRestoreOverrides[1].restoreName: Duplicate value: "a"',
      'spec.volumeRestoreOverrides[2].volumeName: Required value',
    ],
  },
  'too many overrides': {
    spec: { volumeRestoreOverrides: Array.from({ length: 101 }, (_, i) => ({ volumeName: `v${i}` })) },
    want: ['spec.volumeRestoreOverrides: Too many: 101: must have at most 100 items'],
  },
  'too many patches': {
    spec: { patches: Array.from({ length: 101 }, () => '') },
    want: ['spec.patches: Too many: 101: must have at most 100 items'],
  },
};

for (const [name, { spec, old, unfinished = [], want = [] }] of Object.entries(restores)) {
  test(`restore: ${name}`, () => {
    const context = {
      unfinished: unfinished.map((other) => ({ name: other })),
      ...(old === undefined ? {} : { old: aRestore({ spec: old }) }),
    };
    assert.deepEqual(texts(validateVirtualMachineRestore(aRestore({ spec }), context)), want);
  });
}

test('restore: an invalid name of a claim', () => {
  const spec = { volumeRestoreOverrides: [{ volumeName: 'root', restoreName: 'A b' }] };
  const [error] = texts(validateVirtualMachineRestore(aRestore({ spec }), { unfinished: [] }));
  assert.match(error ?? '', /^spec\.volumeRestoreOverrides\[0\]\.restoreName: Invalid value: "A b"/);
});

const FIRMWARE = '/spec/template/spec/domain/firmware';
const UUID = 'aaaaaaaa-b3ef-428c-8861-06e72d69f223';
const SHAPE = /must be a JSON object like/;
const WHERE = /path must be in \/metadata\/labels, \/metadata\/annotations or \/spec\/$/;
const REMOVES = /removes the firmware uuid; replace it with another one, or with "" for a new one$/;

const patches: Record<string, { patch: unknown; want?: RegExp }> = {
  'a label': { patch: { op: 'add', path: '/metadata/labels/a', value: 'b' } },
  'all annotations': { patch: { op: 'replace', path: '/metadata/annotations', value: {} } },
  'a field of the spec': { patch: { op: 'replace', path: '/spec/runStrategy', value: 'Halted' } },
  'the removal of a device': { patch: { op: 'remove', path: '/spec/template/spec/domain/devices/interfaces/0' } },
  'a test': { patch: { op: 'test', path: `${FIRMWARE}/uuid`, value: null } },
  'another uuid': { patch: { op: 'replace', path: `${FIRMWARE}/uuid`, value: UUID } },
  'a new uuid': { patch: { op: 'replace', path: `${FIRMWARE}/uuid`, value: '' } },
  'another firmware with a uuid': { patch: { op: 'add', path: FIRMWARE, value: { uuid: UUID } } },
  'another serial': { patch: { op: 'replace', path: `${FIRMWARE}/serial`, value: 'A-2' } },

  'invalid JSON': { patch: '{"op"', want: SHAPE },
  'a list': { patch: [], want: SHAPE },
  'a number': { patch: 3, want: SHAPE },
  'a move operation': {
    patch: { op: 'move', from: `${FIRMWARE}/uuid`, path: '/metadata/labels/a' },
    want: /^spec\.patches\[0\]\.op: Unsupported value: "move"/,
  },
  'no operation': { patch: { path: '/spec/a', value: 1 }, want: /\.op: Unsupported value: null/ },
  'an unknown field of the patch': {
    patch: { op: 'add', path: '/spec/a', value: 1, form: 1 },
    want: /unknown field "form"$/,
  },
  'no path': { patch: { op: 'add', value: 1 }, want: /path must be a JSON pointer$/ },
  'an invalid path': { patch: { op: 'add', path: 'spec/a', value: 1 }, want: /path must be a JSON pointer$/ },
  'no value': { patch: { op: 'add', path: '/spec/a' }, want: /add needs a value$/ },
  'the name': { patch: { op: 'replace', path: '/metadata/name', value: 'x' }, want: WHERE },
  'a path that only begins like labels': { patch: { op: 'add', path: '/metadata/labelsx', value: 'x' }, want: WHERE },
  'the status': { patch: { op: 'add', path: '/status/created', value: true }, want: WHERE },
  'the whole spec': { patch: { op: 'replace', path: '/spec', value: {} }, want: WHERE },
  'the whole object': { patch: { op: 'replace', path: '', value: {} }, want: WHERE },
  'the removal of the uuid': { patch: { op: 'remove', path: `${FIRMWARE}/uuid` }, want: REMOVES },
  'a null uuid': { patch: { op: 'replace', path: `${FIRMWARE}/uuid`, value: null }, want: REMOVES },
  'the removal of the firmware': { patch: { op: 'remove', path: FIRMWARE }, want: REMOVES },
  'another firmware without a uuid': { patch: { op: 'replace', path: FIRMWARE, value: {} }, want: REMOVES },
  'another template without a uuid': {
    patch: { op: 'replace', path: '/spec/template', value: { spec: { domain: {} } } },
    want: REMOVES,
  },
  'the removal of the domain': { patch: { op: 'remove', path: '/spec/template/spec/domain' }, want: REMOVES },
  'an invalid uuid': {
    patch: { op: 'replace', path: `${FIRMWARE}/uuid`, value: 'new' },
    want: /the firmware uuid must be a UUID as of RFC 4122, or "" for a new one$/,
  },
};

for (const [name, { patch, want }] of Object.entries(patches)) {
  test(`restore: patches: ${name}`, () => {
    const text = typeof patch === 'string' ? patch : JSON.stringify(patch);
    const restore = aRestore({ spec: { patches: [text] } });
    const errors = texts(validateVirtualMachineRestore(restore, { unfinished: [] }));
    assert.equal(errors.length, want === undefined ? 0 : 1, errors.join());
    if (want !== undefined) assert.match(errors[0] ?? '', want);
  });
}
