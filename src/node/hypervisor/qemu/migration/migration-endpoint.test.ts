import assert from 'node:assert/strict';
import { mkdir, mkdtemp, readdir, readFile, realpath, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { FakeClock } from '#lib/testing/fake-clock.ts';
import { linkAccess, ownUserAccess, type FileAccess } from '#node/hypervisor/qemu/process/file-access.ts';
import { HypervisorError } from '#node/hypervisor/hypervisor.ts';
import { DomainDir } from '#node/hypervisor/qemu/record/domain-dir.ts';
import {
  installKey,
  listenOnFreePort,
  formatEndpointAddress,
  uninstallKey,
  releaseSockets,
  reachableAddress,
  newSecret,
  parseEndpointAddress,
} from '#node/hypervisor/qemu/migration/migration-endpoint.ts';
import { pluggedAccess } from '#node/hypervisor/qemu/sandbox/plugged-files.ts';
import { openScriptedMonitor } from '#node/hypervisor/qemu/testing/scripted-monitor.ts';

for (const text of ['unix:/a/b c,d.sock', 'tcp:10.0.0.1:49152', 'tcp:[fd00::1]:49153', 'tcp:node-1.example:49154']) {
  test(`parses an address that it formatted: ${text}`, () =>
    assert.equal(formatEndpointAddress(parseEndpointAddress(text)), text));
}

for (const text of ['', 'exec:id', 'unix:relative', 'tcp:host', 'tcp:a,b:1', 'fd:3', 'tcp:host:1,to=9', 'unix:/a\0b']) {
  test(`refuses ${JSON.stringify(text)} as an address`, () =>
    assert.throws(() => parseEndpointAddress(text), HypervisorError));
}

test('listens on the first free port', async () => {
  const tried: string[] = [];
  const address = await listenOnFreePort('127.0.0.1', async (at) => {
    tried.push(`${at.host}:${at.port}`);
    if (tried.length < 3) throw Object.assign(new Error('in use'), { code: 'EADDRINUSE' });
  });
  assert.equal(formatEndpointAddress(address), 'tcp:127.0.0.1:49154');
  assert.deepEqual(tried, ['127.0.0.1:49152', '127.0.0.1:49153', '127.0.0.1:49154']);
});

test('reports other errors, and that all ports are in use', async () => {
  const refused = async () => Promise.reject(new Error('Permission denied'));
  await assert.rejects(listenOnFreePort('h', refused), /Permission denied/);
  const inUse = async () => Promise.reject(Object.assign(new Error('in use'), { code: 'EADDRINUSE' }));
  await assert.rejects(
    listenOnFreePort('h', inUse),
    /no migration port is free on h: all of 49152 to 49407 are in use/,
  );
});

test('creates a new key for each migration', () => {
  assert.match(newSecret(), /^[0-9a-f]{64}$/);
  assert.notEqual(newSecret(), newSecret());
});

test('keeps the key only as long as QEMU reads it, for QEMU’s user alone', () =>
  withDirs(async ({ dir }) => {
    const given: unknown[] = [];
    const qmp = await openScriptedMonitor(new FakeClock(), ({ execute, arguments: args }) => {
      if (execute === 'object-add') given.push(args);
      return execute === 'object-del' ? new Error('object not found') : {};
    });
    await installKey(qmp, 'ab'.repeat(32), { dir, user: undefined, endpoint: 'server' });
    const path = join(dir.key, 'keys.psk');
    assert.equal(await readFile(path, 'utf8'), `qemu:${'ab'.repeat(32)}\n`);
    assert.equal((await stat(path)).mode & 0o777, 0o600);
    await uninstallKey(qmp, dir);
    assert.deepEqual(await readdir(dir.key), []);

    await installKey(qmp, 'cd'.repeat(32), { dir, user: undefined, endpoint: 'client' });
    assert.deepEqual(await readdir(dir.key), []);
    assert.deepEqual(given, [
      { 'qom-type': 'tls-creds-psk', id: 'migration-key', dir: '../key', endpoint: 'server' },
      { 'qom-type': 'tls-creds-psk', id: 'migration-key', dir: '../key', endpoint: 'client', username: 'qemu' },
    ]);
    await assert.rejects(installKey(qmp, 'x:y\n', { dir, user: undefined, endpoint: 'client' }), HypervisorError);
    qmp.close();
  }));

test('returns a socket path relative to QEMU’s working directory', () =>
  withTarget(async ({ dir, path }) => {
    const address = await reachableAddress({ type: 'unix', path }, 'disks', {
      user: undefined,
      relays: [],
      dir,
      files: ownUserAccess,
    });
    assert.deepEqual(address, { type: 'unix', path: '../../there/a-uid/run/disks.sock' });
    assert.deepEqual(await readdir(dir.run), []);
  }));

test('links a socket for a QEMU of an earlier version', { skip: process.getuid?.() !== 0 && 'requires root' }, () =>
  withTarget(async ({ dir, path }) => {
    const files = linkAccess({ user: { uid: 64_055, gid: 64_055 }, run: dir.run, targetUid: 0 });
    const address = await reachableAddress({ type: 'unix', path }, 'disks', {
      user: undefined,
      relays: [],
      dir,
      files,
    });
    assert.deepEqual(address, { type: 'unix', path: 'to-disks.sock' });
    const linked = await stat(join(dir.run, 'to-disks.sock'));
    assert.deepEqual([linked.ino, linked.uid], [(await stat(path)).ino, 64_055]);
    await releaseSockets(files, [{ type: 'unix', path }]);
    assert.deepEqual(await readdir(dir.run), []);
  }),
);

test('refuses a socket path that is too long', () =>
  withTarget(
    async ({ dir, path }) => {
      const files: FileAccess = { ...ownUserAccess, socketPathOf: async () => path };
      await assert.rejects(
        reachableAddress({ type: 'unix', path }, 'disks', { user: undefined, relays: [], dir, files }),
        /longer than 107 bytes/,
      );
    },
    { below: 'd'.repeat(120) },
  ));

test('a target node cannot name a file of this machine that is not its socket', () =>
  withTarget(async ({ root, dir, path }) => {
    const refuses = (path: string, reason: RegExp, files = ownUserAccess) =>
      assert.rejects(
        reachableAddress({ type: 'unix', path }, 'disks', { user: undefined, relays: [], dir, files }),
        reason,
      );
    await refuses('/etc/shadow', /"\/etc\/shadow" is not the socket of a migration/);
    await refuses(path.replace('a-uid', 'b-uid'), /is not the socket of a migration/);
    const file = join(dir.run, 'migration.sock');
    await writeFile(file, 'a file');
    await refuses(file, /is not a socket of the guest at the other node/);
    await rm(file);
    await symlink(path, file);
    await refuses(file, /is not a socket of the guest at the other node/);
    const user = { uid: 1_879_048_200, gid: 1_879_048_200 };
    await refuses(path, /is not a socket of the guest at the other node/, pluggedAccess({ user, path: root }));
    const before = await stat(path);
    assert.equal(before.uid, process.getuid?.());
  }));

interface MigrationTarget {
  readonly root: string;
  readonly dir: DomainDir;
  /** The path of a socket. */
  readonly path: string;
}

/** Creates a directory of the domain, and a second one in which its QEMU listens for the guest. */
function withTarget(run: (at: MigrationTarget) => Promise<void>, { below = '' } = {}): Promise<void> {
  return withDirs(async ({ root, dir }) => {
    const target = join(root, 'there', below, 'a-uid', 'run');
    await mkdir(target, { recursive: true });
    const server = createServer();
    const before = process.cwd();
    process.chdir(target);
    await new Promise<void>((resolve) => server.listen('disks.sock', resolve));
    process.chdir(before);
    try {
      await run({ root, dir, path: join(target, 'disks.sock') });
    } finally {
      server.close();
    }
  });
}

async function withDirs(run: (at: { root: string; dir: DomainDir }) => Promise<void>): Promise<void> {
  const root = await realpath(await mkdtemp(join(tmpdir(), 'selfsame-endpoint-')));
  try {
    const dir = new DomainDir(root, 'a-uid');
    await mkdir(dir.run, { recursive: true });
    await run({ root, dir });
  } finally {
    await rm(root, { recursive: true });
  }
}
