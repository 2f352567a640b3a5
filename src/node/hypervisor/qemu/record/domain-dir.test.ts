import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { access, chown, link, mkdir, mkdtemp, readdir, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { HypervisorError } from '#node/hypervisor/hypervisor.ts';
import { aDefinition } from '#node/hypervisor/testing/a-definition.ts';
import { DomainDir, listDomainDirs } from '#node/hypervisor/qemu/record/domain-dir.ts';
import type { DomainRecord } from '#node/hypervisor/qemu/record/domain-record.ts';

const definition = aDefinition({ id: 'a-uid' });
const record: DomainRecord = { version: 1, definition, paused: false };

async function inRoot(run: (root: string) => Promise<void>): Promise<void> {
  const root = await mkdtemp(join(tmpdir(), 'selfsame-domain-dir-'));
  try {
    await run(root);
  } finally {
    await rm(root, { recursive: true });
  }
}

for (const id of ['', '.', '..', '../x', 'a/b', '/etc', 'a\0b', '-x', 'x'.repeat(200)]) {
  test(`${JSON.stringify(id.slice(0, 10))} is not a domain id`, () => {
    assert.throws(() => new DomainDir('/x', id), HypervisorError);
  });
}

test('prepare removes what an earlier attempt left, except for volumes', () =>
  inRoot(async (root) => {
    const dir = new DomainDir(root, 'a-uid');
    await mkdir(join(dir.path, 'volumes'), { recursive: true });
    await mkdir(join(dir.run, 'tpm'), { recursive: true });
    await writeFile(join(dir.run, 'tpm', 'state'), 'old');
    await dir.writeRecord(record, { durable: false });

    await dir.prepare(undefined);

    assert.deepEqual((await readdir(dir.path)).sort(), ['key', 'run', 'volumes']);
    assert.deepEqual(await readdir(join(dir.run, 'tpm')), []);
    assert.equal((await stat(dir.path)).mode & 0o777, 0o711);
    assert.equal((await stat(dir.run)).mode & 0o777, 0o700);
  }));

test('reads a record as it was written', () =>
  inRoot(async (root) => {
    const dir = new DomainDir(root, 'a-uid');
    assert.equal(await dir.readRecord(), 'none');
    await dir.prepare(undefined);
    assert.equal(await dir.readRecord(), 'none');
    await dir.writeRecord(record, { durable: true });
    assert.deepEqual(await dir.readRecord(), record);
    assert.equal((await stat(join(dir.path, 'domain.json'))).mode & 0o777, 0o600);
  }));

const damaged: Record<string, string> = {
  'an incomplete record': '{"version":1,',
  'the record of another domain': JSON.stringify({ ...record, definition: { ...definition, id: 'other' } }),
  'a record of a later version': JSON.stringify({ ...record, version: 2 }),
  'a value that is not an object': 'null',
};

for (const [name, text] of Object.entries(damaged)) {
  test(`${name} is damaged, not absent`, () =>
    inRoot(async (root) => {
      const dir = new DomainDir(root, 'a-uid');
      await dir.prepare(undefined);
      await writeFile(join(dir.path, 'domain.json'), text);
      assert.equal(await dir.readRecord(), 'damaged');
    }));
}

test('clear leaves only volumes, and nothing if there are none', () =>
  inRoot(async (root) => {
    const [bare, withVolumes] = [new DomainDir(root, 'bare'), new DomainDir(root, 'with-volumes')];
    await mkdir(join(withVolumes.path, 'volumes'), { recursive: true });
    for (const dir of [bare, withVolumes]) {
      await dir.prepare(undefined);
      await (await dir.openLog('qemu.log')).close();
      await dir.clear();
    }
    await assert.rejects(access(bare.path));
    assert.deepEqual(await readdir(withVolumes.path), ['volumes']);
    await withVolumes.remove();
    assert.deepEqual(await readdir(root), []);
  }));

test('opens a log empty, and reads its beginning and its end', () =>
  inRoot(async (root) => {
    const dir = new DomainDir(root, 'a-uid');
    await dir.prepare(undefined);
    assert.equal(await dir.readLog('qemu.log'), '');
    assert.equal((await dir.readLogEnd('qemu.log', 10)).length, 0);
    for (const text of ['first', `${'x'.repeat(100_000)}the end`]) {
      const log = await dir.openLog('qemu.log');
      await log.write(text);
      await log.close();
    }
    assert.equal(await dir.readLog('qemu.log'), 'x'.repeat(64 * 1024));
    assert.equal((await dir.readLogEnd('qemu.log', 10)).toString(), 'xxxthe end');
  }));

test('connects to a socket in a deep directory', () =>
  inRoot(async (root) => {
    const dir = new DomainDir(join(root, 'd'.repeat(120)), 'a-uid');
    await dir.prepare(undefined);
    const server = createServer((socket) => socket.end('hello'));
    const before = process.cwd();
    process.chdir(dir.run);
    await new Promise<void>((resolve) => server.listen('qmp.sock', resolve));
    process.chdir(before);
    assert.equal(await dir.hasSocket('qmp.sock'), true);
    assert.equal(await dir.hasSocket('serial.sock'), false);
    const socket = await dir.connect('qmp.sock');
    const said = await new Promise((resolve) => socket.once('data', (bytes: Buffer) => resolve(bytes.toString())));
    assert.equal(said, 'hello');
    await assert.rejects(dir.connect('serial.sock'), /ENOENT/);
    socket.destroy();
    await new Promise((resolve) => server.close(resolve));
  }));

test('lists only directories with a domain id', () =>
  inRoot(async (root) => {
    await mkdir(join(root, 'a-uid'));
    await mkdir(join(root, '.hidden'));
    await writeFile(join(root, 'a-file'), '');
    assert.deepEqual(
      (await listDomainDirs(root)).map(({ id }) => id),
      ['a-uid'],
    );
  }));

test('reads ahead as little as asked', () =>
  inRoot(async (root) => {
    const dir = new DomainDir(root, 'a-uid');
    await dir.prepare(undefined);
    const accepted = Promise.withResolvers<Socket>();
    const server = createServer((socket) => accepted.resolve(socket));
    await new Promise<void>((resolve) => server.listen(join(dir.run, 'serial.sock'), resolve));
    const socket = await dir.connect('serial.sock', { readAheadBytes: 1 });
    const guest = await accepted.promise;
    for (let i = 0; i < 50; i++) {
      await new Promise((resolve) => guest.write('x', resolve));
      await new Promise((resolve) => setImmediate(resolve));
    }
    const { bytesRead } = socket;
    socket.destroy();
    guest.destroy();
    await new Promise((resolve) => server.close(resolve));
    assert.ok(bytesRead < 50, `${bytesRead} bytes were read`);
  }));

test('a guest cannot make us connect to a socket that is not its own', (t) =>
  inRoot(async (root) => {
    const dir = new DomainDir(root, 'a-uid');
    await dir.prepare(undefined);
    let connections = 0;
    const server = createServer((socket) => {
      connections++;
      socket.end();
    });
    t.after(() => server.close());
    await new Promise<void>((resolve) => server.listen(join(root, 'host.sock'), resolve));
    await symlink(join(root, 'host.sock'), join(dir.run, 'serial.sock'));
    await assert.rejects(dir.connect('serial.sock'), /serial\.sock is not a socket of the guest/);
    await writeFile(join(dir.run, 'vnc.sock'), '');
    await assert.rejects(dir.connect('vnc.sock'), /vnc\.sock is not a socket of the guest/);
    if (process.getuid?.() === 0) {
      await link(join(root, 'host.sock'), join(dir.run, 'qmp.sock'));
      await chown(dir.run, 12_345, 12_345);
      await assert.rejects(dir.connect('qmp.sock'), /qmp\.sock is not a socket of the guest/);
    }
    assert.equal(connections, 0);
  }));

/** Listens on a socket without accepting, and exits on input, as a QEMU that cannot start does. */
const DEAF_SERVER = `
  require('node:net').createServer().listen(process.argv[1], () => {
    process.stdout.write('listening');
    require('node:fs').readSync(0, Buffer.alloc(1));
    process.exit(1);
  });`;

test('a process that ends before it accepts a connection closes the socket, and no error goes unhandled', () =>
  inRoot(async (root) => {
    const dir = new DomainDir(root, 'a-uid');
    await dir.prepare(undefined);
    const server = spawn(process.execPath, ['-e', DEAF_SERVER, join(dir.run, 'qmp.sock')], {
      stdio: ['pipe', 'pipe', 'inherit'],
    });
    await once(server.stdout, 'data');
    const socket = await dir.connect('qmp.sock');
    const closed = new Promise((resolve) => socket.once('close', resolve));
    server.stdin.end('x');
    await closed;
    assert.match(String(socket.errored), /ECONNRESET/);
  }));
