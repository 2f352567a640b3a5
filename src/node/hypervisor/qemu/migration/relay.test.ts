import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { connect, createServer, type AddressInfo, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { test } from 'node:test';
import { relayFromPort, relayFromSocket } from '#node/hypervisor/qemu/migration/relay.ts';
import { DomainDir } from '#node/hypervisor/qemu/record/domain-dir.ts';

const HOST = '127.0.0.1';

async function withDir(work: (dir: DomainDir) => Promise<void>): Promise<void> {
  const root = await mkdtemp(join(tmpdir(), 'selfsame-relay-'));
  const dir = new DomainDir(root, 'a-uid');
  await mkdir(dir.run, { recursive: true });
  try {
    await work(dir);
  } finally {
    await rm(root, { recursive: true, force: true });
  }
}

/** A QEMU that answers what it was sent, in capital letters, after the sender has ended its direction. */
async function listenAsQemu(at: { path: string } | { host: string; port: number }) {
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    socket.on('error', () => undefined);
    void text(socket).then((sent) => socket.end(sent.toUpperCase()));
  });
  server.listen(at);
  await once(server, 'listening');
  return server;
}

async function askThrough(socket: Socket, message: string): Promise<string> {
  socket.on('error', () => undefined);
  socket.end(message);
  return await text(socket);
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, HOST);
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return port;
}

test('carries both directions from a port to a socket of QEMU, each to its own end', () =>
  withDir(async (dir) => {
    const qemu = await listenAsQemu({ path: join(dir.run, 'migration.sock') });
    const port = await freePort();
    const relay = await relayFromPort({ host: HOST, port }, dir, 'migration.sock');
    assert.equal(await askThrough(connect({ host: HOST, port, allowHalfOpen: true }), 'memory'), 'MEMORY');
    relay.close();
    await assert.rejects(once(connect({ host: HOST, port }), 'connect'), { code: 'ECONNREFUSED' });
    qemu.close();
  }));

test('a port that is in use is reported as such', () =>
  withDir(async (dir) => {
    const port = await freePort();
    const other = await listenAsQemu({ host: HOST, port });
    await assert.rejects(relayFromPort({ host: HOST, port }, dir, 'migration.sock'), { code: 'EADDRINUSE' });
    other.close();
  }));

test('carries a connection of the source’s QEMU to another host, and replaces an old socket', () =>
  withDir(async (dir) => {
    const port = await freePort();
    const target = await listenAsQemu({ host: HOST, port });
    const options = { name: 'to-memory.sock', user: undefined };
    (await relayFromSocket(dir, options, { host: HOST, port })).close();
    const relay = await relayFromSocket(dir, options, { host: HOST, port });
    const open = connect({ path: join(dir.run, 'to-memory.sock'), allowHalfOpen: true });
    await once(open, 'connect');
    relay.stopListening();
    assert.equal(await askThrough(open, 'still'), 'STILL');
    relay.close();
    target.close();
  }));

test('listens in a directory whose path is too long for a socket', () =>
  withDir(async (root) => {
    const dir = new DomainDir(join(root.path, 'x'.repeat(120)), 'a-uid');
    await mkdir(dir.run, { recursive: true });
    const port = await freePort();
    const target = await listenAsQemu({ host: HOST, port });
    const relay = await relayFromSocket(dir, { name: 'to-memory.sock', user: undefined }, { host: HOST, port });
    const socket = await dir.connect('to-memory.sock');
    assert.equal(await askThrough(socket, 'far'), 'FAR');
    relay.close();
    target.close();
  }));

test('ends the connection if the other side cannot be reached or breaks off', () =>
  withDir(async (dir) => {
    const port = await freePort();
    const relay = await relayFromSocket(dir, { name: 'to-disks.sock', user: undefined }, { host: HOST, port });
    const socket = connect({ path: join(dir.run, 'to-disks.sock') });
    socket.on('error', () => undefined).resume();
    await once(socket, 'close');
    relay.close();
  }));
