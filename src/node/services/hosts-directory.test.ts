import assert from 'node:assert/strict';
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, utimesSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { writeHostsFiles } from '#node/services/hosts-directory.ts';
import { nftRuleSets } from '#node/services/nft.ts';

function tempDir(t: TestContext): string {
  const dir = mkdtempSync(join(tmpdir(), 'selfsame-hosts-'));
  t.after(() => rmSync(dir, { recursive: true }));
  return join(dir, 'hosts');
}

test('the directory gets exactly the wanted files, readable for the DNS server', async (t) => {
  const dir = tempDir(t);
  await writeHostsFiles(
    dir,
    new Map([
      ['default.web', 'one\n'],
      ['default.db', 'two\n'],
    ]),
    0,
  );
  await writeHostsFiles(dir, new Map([['default.web', 'changed\n']]), 0);
  assert.deepEqual(readdirSync(dir), ['default.web']);
  assert.equal(readFileSync(join(dir, 'default.web'), 'utf8'), 'changed\n');
  assert.equal(statSync(join(dir, 'default.web')).mode & 0o777, 0o644);
});

test('a file with the right content is not written again', async (t) => {
  const dir = tempDir(t);
  const files = new Map([['default.web', 'one\n']]);
  await writeHostsFiles(dir, files, 0);
  const before = statSync(join(dir, 'default.web')).ino;
  await writeHostsFiles(dir, files, 0);
  assert.equal(statSync(join(dir, 'default.web')).ino, before);
});

test('temporary files of a killed process are removed, those of a running one are not', async (t) => {
  const dir = tempDir(t);
  await writeHostsFiles(dir, new Map(), 0);
  const nowMs = 1_000_000_000_000;
  for (const [name, ageMs] of [
    ['.old.1', 120_000],
    ['.new.2', 1000],
  ] as const) {
    writeFileSync(join(dir, name), '');
    const seconds = (nowMs - ageMs) / 1000;
    utimesSync(join(dir, name), seconds, seconds);
  }
  await writeHostsFiles(dir, new Map(), nowMs);
  assert.deepEqual(readdirSync(dir), ['.new.2']);
});

test('a missing nft is reported with the package to install', async () => {
  const rules = nftRuleSets(['/nonexistent/nft']);
  await assert.rejects(rules.apply(''), { message: /is not installed; install the package nftables/ });
});

test('a program that fails is reported with its error output', async () => {
  const rules = nftRuleSets(['sh', '-c', 'echo wrong rule >&2; exit 1']);
  await assert.rejects(rules.apply('table'), {
    message: 'Cannot apply the rules of Services: nft failed: wrong rule\n',
  });
  assert.equal(await rules.readChain('t', 'c'), undefined);
});
