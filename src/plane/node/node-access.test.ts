import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { FakeClock } from '#lib/testing/fake-clock.ts';
import { kubeconfigText } from '#lib/files/kubeconfig-file.ts';
import { silentLog } from '#lib/log.ts';
import { issue, makeAuthority } from '#lib/pki/authority.ts';
import { NodeAccess } from '#plane/node/node-access.ts';

const DAY = 24 * 3_600_000;
const clock = new FakeClock();
const authority = makeAuthority({ commonName: 'ca' }, { nowMs: clock.now(), lifetimeMs: 1000 * DAY });

function textOf(days: number, server = 'https://127.0.0.1:6443'): string {
  const subject = { commonName: 'system:node:n1', organizations: ['system:nodes'] };
  const issued = issue(authority, { subject, purpose: { kind: 'client' }, nowMs: clock.now(), lifetimeMs: days * DAY });
  return kubeconfigText({ server, caPem: authority.pem, user: 'system:node:n1', ...issued });
}

function scene(t: TestContext, text: string) {
  const dir = mkdtempSync(join(tmpdir(), 'selfsame-access-'));
  t.after(() => rmSync(dir, { recursive: true }));
  const file = join(dir, 'kubeconfig');
  writeFileSync(file, text);
  return {
    file,
    open: () => new NodeAccess({ file, clock, log: silentLog }),
    write: (next: string) => writeFileSync(file, next),
  };
}

test('a replaced file is loaded within two minutes', async (t) => {
  const { open, write } = scene(t, textOf(10));
  const access = open();
  const seen: (string | undefined)[] = [];
  access.onRenewed(({ clientCertificate }) => seen.push(clientCertificate));
  const stopping = new AbortController();
  const running = access.run(stopping);
  await clock.advance(120_000);
  assert.equal(seen.length, 0, 'nothing has changed');
  write(textOf(20));
  await clock.advance(120_000);
  assert.deepEqual(seen, [access.now().clientCertificate]);
  stopping.abort();
  await running;
});

const useless: Record<string, string> = {
  'a file that is not a kubeconfig': 'kind: [',
  'an empty file': '',
  'a kubeconfig for another server': textOf(10, 'https://127.0.0.2:6443'),
};
for (const [name, text] of Object.entries(useless)) {
  test(`${name} changes nothing`, (t) => {
    const { open, write } = scene(t, textOf(10));
    const access = open();
    const before = access.now();
    write(text);
    access.reload();
    assert.equal(access.now(), before);
  });
}

test('an expired certificate is an error', (t) => {
  const { open, file } = scene(t, textOf(-0.01));
  assert.throws(open, (error: Error) => {
    assert.equal(error.name, 'KubeconfigError');
    assert.match(error.message, /its certificate expired on 20\d\d-.*; run selfsame join --as node again/);
    return error.message.includes(file);
  });
});

test('a file that cannot be read is an error', (t) => {
  const { file } = scene(t, '');
  assert.throws(() => new NodeAccess({ file: `${file}-not`, clock, log: silentLog }), { name: 'KubeconfigError' });
});
