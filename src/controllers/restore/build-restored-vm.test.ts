import assert from 'node:assert/strict';
import { test } from 'node:test';
import { legacyUuid } from '#api/legacy-uuid.ts';
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
} from '#controllers/restore/restore-world.fixture.ts';

const LEGACY = legacyUuid('db');
const NONE: ContentOverrides = { vm: { firmware: {} }, identity: 'none' };

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

function makeVm(content: ContentOverrides = {}, { target = 'db', holder = '', patches = [] as object[] } = {}) {
  const restore = aRestore({ target, spec: { patches: patches.map((patch) => JSON.stringify(patch)) } });
  const world = aWorld({ restore, vm: undefined, ...(holder === '' ? {} : { uuidHolder: holder }) });
  return buildNewVm(world, aContent(content).spec);
}

function made(...args: Parameters<typeof makeVm>): RestoredVm {
  const built = makeVm(...args);
  assert.ok('object' in built);
  return built;
}

function existing(content: ContentOverrides = {}, vm: VmOverrides = {}): RestoredVm {
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
    existing(NONE),
    { uuid: LEGACY, serial: 's2', mac: MAC, legacy: true },
  ],
  'row 13, U12: without a uuid a VM that was deleted gets the legacy value': [
    made(NONE),
    { uuid: LEGACY, serial: undefined, mac: MAC, legacy: true },
  ],
  'U12: an empty uuid is none': [
    made({ vm: { firmware: { uuid: '' } }, identity: 'none' }),
    { uuid: LEGACY, serial: undefined, mac: MAC, legacy: true },
  ],
  'row 8, U13: an existing target gets back the uuid of the snapshot': [existing(), KEPT],
  'row 8, U13: a VM that was deleted gets back the uuid of the snapshot': [made(), KEPT],
  'U13: also where another VM has it now': [made({}, { holder: 'other/copy' }), KEPT],
  "a uuid that only the record knows is the VM's, not the legacy one": [
    made({ vm: { firmware: {} }, identity: { spec: { firmware: { uuid: UUID } } } }),
    { uuid: UUID, serial: undefined, mac: MAC, legacy: false },
  ],
  'a serial that the snapshot does not have is kept': [
    existing({ vm: { firmware: { uuid: UUID } } }),
    { ...KEPT, serial: 's2' },
  ],
  'U15: another name keeps all where nobody has the uuid': [made({}, { target: 'copy' }), KEPT],
  'U15: another name gets none where somebody has the uuid': [made({}, { target: 'copy', holder: 'ns/db' }), FRESH],
  'U14: another name gets the legacy value of the old name where nobody has it': [
    made(NONE, { target: 'copy' }),
    { uuid: LEGACY, serial: undefined, mac: MAC, legacy: true },
  ],
  'U14: another name gets no legacy value where somebody has it': [
    made(NONE, { target: 'copy', holder: 'ns/db' }),
    FRESH,
  ],
  'patches have the last word on a target that is made': [
    made(NONE, { patches: [{ op: 'replace', path: '/spec/template/spec/domain/firmware/uuid', value: '' }] }),
    { uuid: '', serial: undefined, mac: MAC, legacy: false },
  ],
  'patches find the firmware also where it was emptied': [
    made(
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

test('a target that is made is stopped, on the restored claims, and marked', () => {
  const { object } = made(
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

test('a snapshot of a VM that used running makes one that does', () => {
  const { spec } = made({ vm: { spec: { running: true } } }).object;
  assert.deepEqual([spec.running, spec.runStrategy], [false, undefined]);
});

test('an existing target keeps its run strategy and what it was labelled with since', () => {
  const vm = {
    spec: { runStrategy: 'Manual' },
    metadata: { labels: { app: 'x', since: '1' }, annotations: { b: '2' } },
  };
  const { object } = existing({ vm: { spec: { running: true } } }, vm);
  assert.deepEqual([object.spec.runStrategy, object.spec.running], ['Manual', undefined]);
  assert.deepEqual(object.metadata.labels, { app: 'db', since: '1' });
  assert.deepEqual(object.metadata.annotations, { b: '2', 'restore.kubevirt.io/lastRestoreUID': 'back-restore-uid' });
});

const LABEL = 'kubevirt.io/vm-delete-protection';
const REASON = 'selfsame.io/delete-protection-reason';
const protections: Record<string, { was?: string; is?: string }> = {
  'protected since the snapshot': { was: 'false', is: 'true' },
  'protected since, where nothing was said': { is: 'true' },
  'protected no more since the snapshot': { was: 'true' },
};
for (const [sentence, { was, is }] of Object.entries(protections)) {
  test(`whether an existing target is protected is not for a snapshot to say: ${sentence}`, () => {
    const metadata = (value: string | undefined, reason: string) =>
      value === undefined ? {} : { labels: { [LABEL]: value }, annotations: { [REASON]: reason } };
    const { object } = existing({ vm: { metadata: metadata(was, 'old') } }, { metadata: metadata(is, 'new') });
    assert.equal(object.metadata.labels?.[LABEL], is);
    assert.equal(object.metadata.annotations?.[REASON], is === undefined ? undefined : 'new');
  });
}

test('a patch cannot move the VM elsewhere, nor hide who made it', () => {
  const patches = [
    { op: 'replace', path: '/metadata/name', value: 'elsewhere' },
    { op: 'remove', path: '/metadata/annotations' },
  ];
  const { metadata } = made({}, { patches }).object;
  assert.equal(metadata.name, 'db');
  assert.equal(metadata.annotations?.['restore.kubevirt.io/lastRestoreUID'], 'back-restore-uid');
});

test('a patch that does not fit is refused with its cause', () => {
  const built = makeVm({}, { patches: [{ op: 'remove', path: '/spec/nowhere' }] });
  assert.match('refused' in built ? built.refused : '', /^Cannot apply spec\.patches: .*nowhere/);
});

test('a patch that leaves next to nothing does not throw', () => {
  const { object } = made(NONE, { patches: [{ op: 'remove', path: '/spec/template' }] });
  assert.deepEqual(firmwareOf(object), {});
});

test('a template that names its VM does not keep it from another name', () => {
  const { spec } = aContent();
  const { virtualMachine: vm } = spec.source;
  const template = { ...vm.spec.template, metadata: { name: 'db', labels: { app: 'db' } } };
  const source = { ...spec.source, virtualMachine: { ...vm, spec: { ...vm.spec, template } } };
  const built = buildNewVm(aWorld({ restore: aRestore({ target: 'copy' }), vm: undefined }), { ...spec, source });
  assert.ok('object' in built);
  assert.deepEqual(built.object.spec.template.metadata, { labels: { app: 'db' } });
});
