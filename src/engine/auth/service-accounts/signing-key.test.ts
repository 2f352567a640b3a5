import assert from 'node:assert/strict';
import { generateKeyPairSync } from 'node:crypto';
import { chmod, mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { ensureSigningKey } from '#engine/auth/service-accounts/signing-key.ts';

let root: string;
before(async () => {
  root = await mkdtemp(join(tmpdir(), 'signing-key-'));
});
after(() => rm(root, { recursive: true }));

test('the key is created once and readable by its owner only', async () => {
  const dir = join(root, 'made');
  const first = await ensureSigningKey(dir);
  const path = join(dir, 'sa.key');
  const [text, { mode }] = [await readFile(path, 'utf8'), await stat(path)];
  assert.equal(mode & 0o777, 0o600);
  await chmod(path, 0o644);
  const second = await ensureSigningKey(dir);
  assert.equal(second.id, first.id);
  assert.ok(second.publicKey.equals(first.publicKey));
  assert.equal(await readFile(path, 'utf8'), text);
  assert.equal((await stat(path)).mode & 0o777, 0o600, 'the mode of a file that others can read must be corrected');
});

const rsa = generateKeyPairSync('rsa', { modulusLength: 1024 });
const damaged: Record<string, { text: string; want: RegExp }> = {
  'no key': { text: 'nonsense', want: /sa\.key": it contains no private key; restore it/ },
  'another type of key': {
    text: rsa.privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
    want: /sa\.key": it contains no EC P-256 key; restore it/,
  },
};

for (const [name, { text, want }] of Object.entries(damaged)) {
  test(`a file with ${name} is rejected and kept`, async () => {
    const dir = await mkdtemp(join(root, 'damaged-'));
    await writeFile(join(dir, 'sa.key'), text);
    await assert.rejects(ensureSigningKey(dir), { name: 'PkiError', message: want });
    assert.equal(await readFile(join(dir, 'sa.key'), 'utf8'), text);
  });
}
