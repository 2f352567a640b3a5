import assert from 'node:assert/strict';
import {
  mkdtempSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import type { DomainDefinition } from '#node/hardware/domain-definition.ts';
import { aDefinition } from '#node/hypervisor/testing/a-definition.ts';
import { ensurePersistentState } from '#node/hypervisor/qemu/state/persistent-state.ts';

const isRoot = process.getuid?.() === 0;
const USER = isRoot ? { uid: 64_055, gid: 64_055 } : undefined;

interface StateOptions {
  readonly tpm?: boolean;
  readonly efi?: boolean;
}

function aScene(t: TestContext, { tpm = true, efi = true }: StateOptions = {}) {
  const root = mkdtempSync(join(tmpdir(), 'kept-state-'));
  t.after(() => rmSync(root, { recursive: true, force: true }));
  const [directory, template] = [join(root, 'state'), join(root, 'template.fd')];
  mkdirSync(directory);
  writeFileSync(template, 'as delivered');
  const plain = aDefinition();
  const definition: DomainDefinition = {
    ...plain,
    state: { directory },
    firmware: { ...plain.firmware, loader: { type: 'efi', secureBoot: false, persistent: efi } },
    devices: [...plain.devices, { type: 'tpm', id: 'tpm0', model: 'crb', persistent: tpm }],
  };
  return {
    directory,
    nvram: join(directory, 'nvram.fd'),
    ensure: () => ensurePersistentState(definition, { code: '/code.fd', variables: template }, USER),
  };
}

test('creates the persistent state once, for the guests’ user', async (t) => {
  const { directory, nvram, ensure } = aScene(t);
  assert.deepEqual(await ensure(), { tpm: join(directory, 'tpm'), nvram });
  assert.equal(readFileSync(nvram, 'utf8'), 'as delivered');
  const stats = [nvram, join(directory, 'tpm')].map((path) => statSync(path));
  assert.deepEqual(
    stats.map(({ uid, mode }) => [uid, mode & 0o777]),
    [0o600, 0o700].map((mode) => [USER?.uid ?? process.getuid?.(), mode]),
  );

  writeFileSync(nvram, 'what the guest wrote');
  await ensure();

  assert.equal(readFileSync(nvram, 'utf8'), 'what the guest wrote');
});

test('repeats an interrupted copy', async (t) => {
  const { directory, nvram, ensure } = aScene(t);
  writeFileSync(`${nvram}.new`, 'as del');
  await ensure();
  assert.equal(readFileSync(nvram, 'utf8'), 'as delivered');
  assert.deepEqual(readdirSync(directory).sort(), ['nvram.fd', 'tpm']);
});

test('creates nothing that is not persistent', async (t) => {
  const onlyTpm = aScene(t, { efi: false });
  assert.deepEqual(await onlyTpm.ensure(), { tpm: join(onlyTpm.directory, 'tpm') });
  const onlyEfi = aScene(t, { tpm: false });
  assert.deepEqual(await onlyEfi.ensure(), { nvram: onlyEfi.nvram });
  const none = aScene(t, { tpm: false, efi: false });
  assert.deepEqual(await none.ensure(), {});
  assert.deepEqual(readdirSync(none.directory), []);
});

test('refuses links permanently', async (t) => {
  for (const name of ['tpm', 'nvram.fd']) {
    const { directory, ensure } = aScene(t);
    symlinkSync(join(directory, '..'), join(directory, name));
    await assert.rejects(ensure(), { permanent: true, message: /is not a (file|directory)$/ });
  }
});
