/** A full disk: the data directory is on a small file system that the test fills. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { appendFileSync, mkdtempSync, rmdirSync, rmSync, statfsSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout } from 'node:timers/promises';
import type { TestContext } from 'node:test';
import type { Client } from '#client/client.ts';
import { createClient } from '#client/rest-client.ts';
import { ApiError } from '#kube/api-error.ts';
import { CONFIG_MAPS } from '#kube/core-kinds.ts';
import type { Stored, WatchEvent } from '#kube/meta.ts';
import { ROOT_CA } from '#test/support/kinds.ts';
import { sendHttp2Request, openHttp2Session, withoutCredentials } from '#test/support/raw-https.ts';
import { spawnServer, startServer, openTransport } from '#test/support/server-process.ts';

/** Room for the reserve and the floor of free space (disk-reserve.ts), and for what the test writes. */
const DISK_BYTES = 64 * 1024 * 1024;
/** Large enough that each object needs new pages. */
const OBJECT_BYTES = 64 * 1024;
/** Page size of tmpfs. */
const PAGE_BYTES = 4096;
const NAMESPACE = 'default';
const OK = { status: 200, text: 'ok' };

/** Mounts a small file system until the test ends, or returns why the machine does not allow it. */
function mountDisk(t: TestContext): { dir: string } | { reason: string } {
  if (process.getuid?.() !== 0) return { reason: 'a small file system can be mounted only by root' };
  const dir = mkdtempSync(join(tmpdir(), 'selfsame-disk-'));
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${DISK_BYTES},mode=0700`, 'selfsame-test', dir], {
      stdio: 'pipe',
    });
  } catch (error) {
    rmdirSync(dir);
    const message = String((error as { stderr?: unknown }).stderr).trim();
    return { reason: `a small file system cannot be mounted here: ${message}` };
  }
  t.after(() => {
    // Lazily, because a server may still have files open there.
    execFileSync('umount', ['-l', dir]);
    rmdirSync(dir);
  });
  return { dir };
}

/** Fills the file system except for `leave` bytes. */
function fill(ballast: string, leave: number): void {
  writeFileSync(ballast, '');
  const { bavail, bsize } = statfsSync(ballast);
  const piece = Buffer.alloc(bsize);
  for (let left = bavail * bsize; left > leave; left -= bsize) {
    try {
      appendFileSync(ballast, piece);
    } catch (error) {
      assert.equal((error as NodeJS.ErrnoException).code, 'ENOSPC');
      return;
    }
  }
}

function aConfigMap(name: string) {
  return {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name, namespace: NAMESPACE },
    data: { pad: 'x'.repeat(OBJECT_BYTES) },
  };
}

/** Creates objects until the server refuses one; returns the refusal. */
async function writeUntilFull(client: Client, prefix: string, written: Stored[]): Promise<ApiError> {
  for (let i = 0; i < (2 * DISK_BYTES) / OBJECT_BYTES; i++) {
    try {
      written.push(await client.create(CONFIG_MAPS, aConfigMap(`${prefix}-${i}`)));
    } catch (error) {
      assert.ok(error instanceof ApiError, String(error));
      return error;
    }
  }
  return assert.fail('the disk accepted more than its size');
}

/** Creates an object once the server has noticed that there is space. */
async function createWhenFree(client: Client, name: string): Promise<Stored> {
  for (;;) {
    try {
      return await client.create(CONFIG_MAPS, aConfigMap(name));
    } catch (error) {
      if (!(error instanceof ApiError && error.code === 507)) throw error;
      await setTimeout(100);
    }
  }
}

async function checkAll(client: Client, written: readonly Stored[]): Promise<void> {
  const { items } = await client.list(CONFIG_MAPS, { namespace: NAMESPACE });
  const found = new Map(items.map((item) => [item.metadata.name, item]));
  found.delete(ROOT_CA);
  for (const { metadata, data } of written) {
    const item = found.get(metadata.name);
    assert.ok(item !== undefined, `${metadata.name} was acknowledged and is lost`);
    assert.deepEqual([item.metadata.resourceVersion, item['data']], [metadata.resourceVersion, data]);
    found.delete(metadata.name);
  }
  assert.deepEqual([...found.keys()], [], 'a refused write is not there');
}

function collectEvents(client: Client, resourceVersion: string, signal: AbortSignal) {
  const events: WatchEvent<Stored>[] = [];
  let notify: () => void = () => {};
  const run = (async () => {
    for await (const event of client.watch(CONFIG_MAPS, { namespace: NAMESPACE, resourceVersion, signal })) {
      events.push(event);
      notify();
    }
  })();
  // waitFor reports the failure, if a test waits.
  run.catch(() => {});
  const names = () => events.map(({ object }) => object.metadata.name);
  const until = (count: number) => new Promise<void>((resolve) => (notify = () => events.length >= count && resolve()));
  return {
    async waitFor(written: readonly Stored[]) {
      const want = written.map(({ metadata }) => metadata.name);
      if (events.length < want.length)
        await Promise.race([until(want.length), run.then(() => assert.fail('the watch ended'))]);
      assert.deepEqual(names(), want);
    },
  };
}

async function testFullDisk(t: TestContext, dir: string): Promise<void> {
  const dataDir = join(dir, 'data');
  const ballast = join(dir, 'ballast');
  const server = await startServer(t, { dataDir });
  const client = createClient(openTransport(t, server.access()));
  const session = openHttp2Session(t, server.access());
  const health = async (path: string) => {
    const { status, text } = await sendHttp2Request(session, withoutCredentials(server.access()), { path });
    return { status, text };
  };
  const written: Stored[] = [];
  const { resourceVersion } = (await client.list(CONFIG_MAPS, { namespace: NAMESPACE })).metadata;
  const watch = collectEvents(client, resourceVersion, new AbortController().signal);
  written.push(await client.create(CONFIG_MAPS, aConfigMap('first')));

  fill(ballast, 2 * 1024 * 1024);
  for (const round of ['a', 'b']) {
    const refusal = await writeUntilFull(client, round, written);
    assert.equal(refusal.code, 507);
    assert.equal(refusal.reason, 'InsufficientStorage');
    assert.match(refusal.message, /^Cannot write to .+store\.db: .*full.*; .*free space/);
    fill(ballast, 0);
    await assert.rejects(client.create(CONFIG_MAPS, aConfigMap('also-refused')), { code: 507 });
    await assert.rejects(
      client.patch(
        CONFIG_MAPS,
        { namespace: NAMESPACE, name: 'first' },
        { type: 'merge', body: { data: { more: 'y'.repeat(OBJECT_BYTES) } } },
      ),
      { code: 507 },
    );

    const { status, text } = await health('/readyz');
    // A write may have failed, or the server has noticed before that the disk is almost full.
    if (status === 500) assert.match(text, /^\[-\]store failed: Cannot write to .+store\.db: .*full/m);
    else assert.equal(status, 200, text);
    assert.deepEqual(await health('/livez'), OK);
    await checkAll(client, written);
    await watch.waitFor(written);
    const again = new AbortController();
    await collectEvents(client, resourceVersion, again.signal).waitFor(written);
    again.abort();

    rmSync(ballast);
    written.push(await createWhenFree(client, `${round}-room`));
    assert.deepEqual(await health('/readyz'), OK);
    await watch.waitFor(written);
    await checkAll(client, written);
    fill(ballast, 1024 * 1024);
  }

  // Kills the server and starts it with little free space: it starts, or prints one line that says why not. No data is lost.
  await writeUntilFull(client, 'c', written);
  // The reserve is for deletions.
  await client.delete(CONFIG_MAPS, { namespace: NAMESPACE, name: written.pop()!.metadata.name });
  await server.kill('SIGKILL');
  for (const leave of [0, 1, 2, 3, 5, 8].map((pages) => pages * PAGE_BYTES)) {
    rmSync(ballast);
    fill(ballast, leave);
    const starting = spawnServer(t, { dataDir });
    const started = await starting.ready.then(
      () => true,
      () => false,
    );
    const { code, stderr } = started ? await starting.kill('SIGTERM') : await starting.exited;
    if (started) assert.equal(code, 0, `with ${leave} bytes: ${stderr}`);
    else assert.match(stderr, /^error: Cannot [^\n]*(?:no space left|disk is full)[^\n]*\n$/i, `with ${leave} bytes`);
  }

  rmSync(ballast);
  const next = await startServer(t, { dataDir });
  const after = createClient(openTransport(t, next.access()));
  await checkAll(after, written);
  written.push(await after.create(CONFIG_MAPS, aConfigMap('after')));
  await checkAll(after, written);
  assert.equal((await next.kill('SIGTERM')).code, 0);
}

test('on a full disk writes are refused and reads and watches work; with free space everything works again', async (t) => {
  const disk = mountDisk(t);
  if ('reason' in disk) t.skip(disk.reason);
  else await testFullDisk(t, disk.dir);
});
