import assert from 'node:assert/strict';
import { test } from 'node:test';
import { legacyUuid } from '#api/identity/legacy-uuid.ts';
import { buildExistingVm, buildNewVm, firmwareOf, type RestoredVm } from '#controllers/restore/build-restored-vm.ts';
import {
  aContent,
  aRestore,
  aVm,
  aWorld,
  CLAIM,
  type ContentOverrides,
  IDENTITY,
  MAC,
  OTHER_UUID,
  UUID,
  type VmOverrides,
} from '#controllers/restore/testing/restore-world.ts';

const LEGACY = legacyUuid('db');
const WITHOUT_UUID: ContentOverrides = { vm: { firmware: {} }, identity: 'none' };

interface Identity {
  readonly uuid?: string;
  readonly serial?: string;
  readonly mac?: string;
  readonly legacy?: boolean;
}

function identityOf({ object, legacy }: RestoredVm): Identity {
  const { uuid, serial } = firmwareOf(object);
  const mac = object.spec.template.spec?.domain.devices?.interfaces?.[0]?.macAddress;
  return { uuid, serial, mac, legacy };
}

function buildVm(content: ContentOverrides = {}, { target = 'db', holder = '', patches = [] as object[] } = {}) {
  const restore = aRestore({ target, spec: { patches: patches.map((patch) => JSON.stringify(patch)) } });
  const world = aWorld({ restore, vm: undefined, ...(holder === '' ? {} : { uuidHolder: holder }) });
  return buildNewVm(world, aContent(content).spec);
}

function builtVm(...args: Parameters<typeof buildVm>): RestoredVm {
  const built = buildVm(...args);
  assert.ok('object' in built);
  return built;
}

function builtExistingVm(content: ContentOverrides = {}, vm: VmOverrides = {}): RestoredVm {
  return buildExistingVm(
    aWorld(),
    aContent(content).spec,
    aVm({ firmware: { uuid: OTHER_UUID, serial: 's2' }, ...vm }),
  );
}

const KEPT = { uuid: UUID, serial: 's1', mac: MAC, legacy: false };
const FRESH = { uuid: undefined, serial: undefined, mac: undefined, legacy: false };

const identities: Record<string, [RestoredVm, Identity]> = {
  'row 4, U12: without a uuid an existing target gets the legacy value': [
    builtExistingVm(WITHOUT_UUID),
    { uuid: LEGACY, serial: 's2', mac: MAC, legacy: true },
  ],
  'row 13, U12: without a uuid a VM that was deleted gets the legacy value': [
    builtVm(WITHOUT_UUID),
    { uuid: LEGACY, serial: undefined, mac: MAC, legacy: true },
  ],
  'U12: an empty uuid counts as none': [
    builtVm({ vm: { firmware: { uuid: '' } }, identity: 'none' }),
    { uuid: LEGACY, serial: undefined, mac: MAC, legacy: true },
  ],
  'row 8, U13: an existing target gets back the uuid of the snapshot': [builtExistingVm(), KEPT],
  'row 8, U13: a VM that was deleted gets back the uuid of the snapshot': [builtVm(), KEPT],
  'U13: a VM that was deleted gets back its uuid also if another VM has it now': [
    builtVm({}, { holder: 'other/copy' }),
    KEPT,
  ],
  'a uuid that is only in the record is used instead of the legacy one': [
    builtVm({ vm: { firmware: {} }, identity: { spec: { firmware: { uuid: UUID } } } }),
    { uuid: UUID, serial: undefined, mac: MAC, legacy: false },
  ],
  'an existing target keeps its serial if the snapshot has none': [
    builtExistingVm({ vm: { firmware: { uuid: UUID } } }),
    { ...KEPT, serial: 's2' },
  ],
  'U15: another name keeps the identity if no VM has the uuid': [builtVm({}, { target: 'copy' }), KEPT],
  'U15: another name gets no identity if another VM has the uuid': [
    builtVm({}, { target: 'copy', holder: 'ns/db' }),
    FRESH,
  ],
  'U14: another name gets the legacy value of the old name if no VM has it': [
    builtVm(WITHOUT_UUID, { target: 'copy' }),
    { uuid: LEGACY, serial: undefined, mac: MAC, legacy: true },
  ],
  'U14: another name gets no legacy value if another VM has it': [
    builtVm(WITHOUT_UUID, { target: 'copy', holder: 'ns/db' }),
    FRESH,
  ],
  'patches override the uuid of a new target': [
    builtVm(WITHOUT_UUID, {
      patches: [{ op: 'replace', path: '/spec/template/spec/domain/firmware/uuid', value: '' }],
    }),
    { uuid: '', serial: undefined, mac: MAC, legacy: false },
  ],
  'patches can set a uuid after the identity was removed': [
    builtVm(
      { identity: IDENTITY },
      {
        target: 'copy',
        holder: 'ns/db',
        patches: [{ op: 'replace', path: '/spec/template/spec/domain/firmware/uuid', value: OTHER_UUID }],
      },
    ),
    { ...FRESH, uuid: OTHER_UUID },
  ],
};

for (const [name, [vm, want]] of Object.entries(identities)) {
  test(name, () => assert.deepEqual(identityOf(vm), want));
}

test('a new target is stopped, uses the restored claims and has the mark', () => {
  const { object } = builtVm(
    { vm: { spec: { runStrategy: 'Always' }, metadata: { annotations: { a: '1' } } } },
    { target: 'copy' },
  );
  assert.equal(object.spec.runStrategy, 'Halted');
  assert.deepEqual(object.metadata, {
    name: 'copy',
    namespace: 'ns',
    labels: { app: 'db' },
    annotations: { a: '1', 'restore.kubevirt.io/lastRestoreUID': 'back-restore-uid' },
  });
  assert.equal(object.spec.template.spec?.volumes?.[0]?.persistentVolumeClaim?.claimName, CLAIM);
});

test('a new target uses running if the VM in the snapshot did', () => {
  const { spec } = builtVm({ vm: { spec: { running: true } } }).object;
  assert.deepEqual([spec.running, spec.runStrategy], [false, undefined]);
});

test('an existing target keeps its run strategy and its newer labels', () => {
  const vm = {
    spec: { runStrategy: 'Manual' },
    metadata: { labels: { app: 'x', since: '1' }, annotations: { b: '2' } },
  };
  const { object } = builtExistingVm({ vm: { spec: { running: true } } }, vm);
  assert.deepEqual([object.spec.runStrategy, object.spec.running], ['Manual', undefined]);
  assert.deepEqual(object.metadata.labels, { app: 'db', since: '1' });
  assert.deepEqual(object.metadata.annotations, { b: '2', 'restore.kubevirt.io/lastRestoreUID': 'back-restore-uid' });
});

const LABEL = 'kubevirt.io/vm-delete-protection';
const REASON = 'selfsame.io/delete-protection-reason';
const protections: Record<string, { was?: string; is?: string }> = {
  'protected since the snapshot': { was: 'false', is: 'true' },
  'protected since a snapshot without the label': { is: 'true' },
  'unprotected since the snapshot': { was: 'true' },
};
for (const [sentence, { was, is }] of Object.entries(protections)) {
  test(`an existing target keeps its own delete protection: ${sentence}`, () => {
    const metadata = (value: string | undefined, reason: string) =>
      value === undefined ? {} : { labels: { [LABEL]: value }, annotations: { [REASON]: reason } };
    const { object } = builtExistingVm({ vm: { metadata: metadata(was, 'old') } }, { metadata: metadata(is, 'new') });
    assert.equal(object.metadata.labels?.[LABEL], is);
    assert.equal(object.metadata.annotations?.[REASON], is === undefined ? undefined : 'new');
  });
}

test('a patch cannot change the name of the VM or remove the mark', () => {
  const patches = [
    { op: 'replace', path: '/metadata/name', value: 'elsewhere' },
    { op: 'remove', path: '/metadata/annotations' },
  ];
  const { metadata } = builtVm({}, { patches }).object;
  assert.equal(metadata.name, 'db');
  assert.equal(metadata.annotations?.['restore.kubevirt.io/lastRestoreUID'], 'back-restore-uid');
});

test('a patch that cannot be applied is refused with its cause', () => {
  const built = buildVm({}, { patches: [{ op: 'remove', path: '/spec/nowhere' }] });
  assert.match('refused' in built ? built.refused : '', /^Cannot apply spec\.patches: .*nowhere/);
});

test('a patch may remove the template', () => {
  const { object } = builtVm(WITHOUT_UUID, { patches: [{ op: 'remove', path: '/spec/template' }] });
  assert.deepEqual(firmwareOf(object), {});
});

test('the name in a template is removed', () => {
  const { spec } = aContent();
  const { virtualMachine: vm } = spec.source;
  const template = { ...vm.spec.template, metadata: { name: 'db', labels: { app: 'db' } } };
  const source = { ...spec.source, virtualMachine: { ...vm, spec: { ...vm.spec, template } } };
  const built = buildNewVm(aWorld({ restore: aRestore({ target: 'copy' }), vm: undefined }), { ...spec, source });
  assert.ok('object' in built);
  assert.deepEqual(built.object.spec.template.metadata, { labels: { app: 'db' } });
});
