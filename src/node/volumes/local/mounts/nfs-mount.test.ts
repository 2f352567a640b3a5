import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { mountNfs } from '#node/volumes/local/mounts/nfs-mount.ts';

function scene(t: TestContext, { isRoot = true, isMounted = false, options = ['ro'] } = {}) {
  const dir = mkdtempSync(join(tmpdir(), 'selfsame-nfs-'));
  t.after(() => rmSync(dir, { recursive: true }));
  const path = join(dir, 'nfs/pv-1');
  const ran: string[] = [];
  const run = async (command: string, args: readonly string[]) => {
    ran.push([command, ...args].join(' '));
    return { stdout: '' };
  };
  const place = { is: 'directory', path, bytes: 0, create: false, mount: { source: 'nas:/x', options } } as const;
  const mounts = async () => (isMounted ? [{ target: path, device: '0:9' }] : []);
  return { path, ran, mount: () => mountNfs(place, { isRoot, run }, mounts) };
}

test('mounts nfs with its options', async (t) => {
  const { path, ran, mount } = scene(t);
  assert.equal(await mount(), undefined);
  assert.deepEqual(ran, [`mount -t nfs -o ro nas:/x ${path}`]);
  assert.equal(statSync(path).mode & 0o777, 0o711);
});

test('mounts nfs once for concurrent guests, and again if the mount was lost', async (t) => {
  const { ran, mount } = scene(t);
  assert.deepEqual(await Promise.all([mount(), mount()]), [undefined, undefined]);
  assert.equal(ran.length, 1);
  await mount();
  assert.equal(ran.length, 2);
});

test('does not mount nfs again if it is mounted', async (t) => {
  const { ran, mount } = scene(t, { isMounted: true });
  assert.equal(await mount(), undefined);
  assert.deepEqual(ran, []);
});

test('refuses nfs without root and names an alternative', async (t) => {
  const refused = await scene(t, { isRoot: false }).mount();
  assert.equal(refused?.reason, 'VolumeUnsupported');
});
