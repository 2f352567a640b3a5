import assert from 'node:assert/strict';
import { mkdir, mkdtemp, readdir, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import type { DomainDefinition } from '#node/hardware/domain-definition.ts';
import { aDefinition } from '#node/hypervisor/testing/a-definition.ts';
import {
  clearTpmState,
  readNvram,
  syncFile,
  syncPersistentState,
  writeNvram,
} from '#node/hypervisor/qemu/state/move-state.ts';

const timeout = 10_000;

test('overwrites EFI variables in the same file', { timeout }, () =>
  withState(async ({ directory, definition }) => {
    const path = join(directory, 'nvram.fd');
    const before = await stat(path);
    await writeNvram(definition, Buffer.alloc(4096, 7));
    assert.ok((await readFile(path)).equals(Buffer.alloc(4096, 7)));
    assert.equal((await stat(path)).ino, before.ino);
    assert.ok((await readNvram(definition))?.equals(Buffer.alloc(4096, 7)));
  }),
);

test('refuses EFI variables of another size, and missing ones', { timeout }, () =>
  withState(async ({ directory, definition }) => {
    await assert.rejects(writeNvram(definition, Buffer.alloc(4097)), /have 4097 bytes; expected 4096/);
    await assert.rejects(writeNvram(definition, undefined), /did not send the EFI variables/);
    assert.ok((await readFile(join(directory, 'nvram.fd'))).equals(Buffer.alloc(4096)));
  }),
);

test('ignores EFI variables that are not persistent', { timeout }, async () => {
  const plain = aDefinition({ state: { directory: '/nowhere' } });
  assert.equal(await readNvram(plain), undefined);
  await writeNvram(plain, undefined);
});

test('does not follow a link in place of the EFI variables', { timeout }, () =>
  withState(async ({ directory, definition }) => {
    const [path, other] = [join(directory, 'nvram.fd'), join(directory, 'other')];
    await writeFile(other, Buffer.alloc(4096));
    await rm(path);
    await symlink(other, path);
    await assert.rejects(writeNvram(definition, Buffer.alloc(4096, 1)), { code: 'ELOOP' });
    await assert.rejects(readNvram(definition), { code: 'ELOOP' });
    assert.ok((await readFile(other)).equals(Buffer.alloc(4096)));
  }),
);

test('clears the TPM state of an earlier attempt', { timeout }, () =>
  withState(async ({ directory, definition }) => {
    const tpm = join(directory, 'tpm');
    await syncPersistentState(definition);
    await clearTpmState(tpm);
    assert.deepEqual(await readdir(tpm), []);
    await syncPersistentState(definition);
  }),
);

test('ignores a file that was replaced meanwhile', { timeout }, () => syncFile('/nowhere/at/all'));

async function withState(
  run: (at: { directory: string; definition: DomainDefinition }) => Promise<void>,
): Promise<void> {
  const directory = await mkdtemp(join(tmpdir(), 'selfsame-carried-'));
  try {
    await writeFile(join(directory, 'nvram.fd'), Buffer.alloc(4096));
    await mkdir(join(directory, 'tpm', 'sub'), { recursive: true });
    await writeFile(join(directory, 'tpm', 'tpm2-00.permall'), 'x');
    const plain = aDefinition({ state: { directory } });
    const definition: DomainDefinition = {
      ...plain,
      firmware: { ...plain.firmware, loader: { type: 'efi', secureBoot: false, persistent: true } },
      devices: [...plain.devices, { type: 'tpm', id: 'tpm0', model: 'crb', persistent: true }],
    };
    await run({ directory, definition });
  } finally {
    await rm(directory, { recursive: true });
  }
}
