/** A disk that is really full: a small file system of its own for the data directory. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { appendFileSync, rmSync, statfsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import type { TestContext } from 'node:test';
import type { Client } from '#client/client.ts';
import type { HttpTransport } from '#client/http.ts';
import { createClient } from '#client/rest-client.ts';
import { ApiError } from '#kube/api-error.ts';
import type { Stored, WatchEvent } from '#kube/meta.ts';
import { CONFIG_MAPS } from '#test/crash/tickets.ts';
import { spawnServer, startServer, temporaryDir, transportTo } from '#test/support/server-process.ts';

const DISK_BYTES = 32 * 1024 * 1024;
/** Large enough to need room for each. */
const OBJECT_BYTES = 64 * 1024;
const NAMESPACE = 'default';

/** Where the machine lets us mount one; else the reason why not. */
function mountDisk(dir: string): string | undefined {
  if (process.getuid?.() !== 0) return 'a small file system can be mounted only by root';
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${DISK_BYTES},mode=0700`, 'selfsame-test', dir], { stdio: 'pipe' });
    return undefined;
  } catch (error) {
    return `a small file system cannot be mounted here: ${String((error as { stderr?: unknown }).stderr).trim()}`;
  }
}

/** Takes all room but `leave` bytes. */
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
  return { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name, namespace: NAMESPACE }, data: { pad: 'x'.repeat(OBJECT_BYTES) } };
}

/** Creates until one is refused; gives the refusal. */
async function writeUntilFull(client: Client, prefix: string, written: Stored[]): Promise<ApiError> {
  for (let i = 0; i < (2 * DISK_BYTES) / OBJECT_BYTES; i++) {
    try {
      written.push(await client.create(CONFIG_MAPS, aConfigMap(`${prefix}-${i}`)));
    } catch (error) {
      assert.ok(error instanceof ApiError, String(error));
      return error;
    }
  }
  return assert.fail('the disk took more than it has');
}

async function health(transport: HttpTransport, path: string): Promise<string> {
  try {
    await transport.request({ method: 'GET', path });
  } catch (error) {
    // The answer is text, which the client tells only as far as errors go.
    return error instanceof ApiError ? `${error.code}` : 'ok';
  }
  return 'ok';
}

async function checkAll(client: Client, written: readonly Stored[]): Promise<void> {
  const { items } = await client.list(CONFIG_MAPS, { namespace: NAMESPACE });
  const found = new Map(items.map((item) => [item.metadata.name, item]));
  for (const { metadata, data } of written) {
    const item = found.get(metadata.name);
    assert.ok(item !== undefined, `${metadata.name} was acknowledged and is lost`);
    assert.deepEqual([item.metadata.resourceVersion, item['data']], [metadata.resourceVersion, data]);
    found.delete(metadata.name);
  }
  assert.deepEqual([...found.keys()], [], 'a refused write is not there');
}

function collect(client: Client, resourceVersion: string, signal: AbortSignal) {
  const events: WatchEvent<Stored>[] = [];
  let look: () => void = () => {};
  const run = (async () => {
    for await (const event of client.watch(CONFIG_MAPS, { namespace: NAMESPACE, resourceVersion, signal })) {
      events.push(event);
      look();
    }
  })().catch((error: unknown) => {
    if (!signal.aborted) throw error;
  });
  const names = () => events.map(({ object }) => object.metadata.name);
  const until = (count: number) => new Promise<void>((resolve) => (look = () => events.length >= count && resolve()));
  return {
    async saw(written: readonly Stored[]) {
      const want = written.map(({ metadata }) => metadata.name);
      if (events.length < want.length) await Promise.race([until(want.length), run]);
      assert.deepEqual(names(), want);
    },
  };
}

async function onFullDisk(t: TestContext, dir: string): Promise<void> {
  const dataDir = join(dir, 'data');
  const ballast = join(dir, 'ballast');
  const server = await startServer(t, { dataDir });
  const transport = transportTo(t, server.access());
  const client = createClient(transport);
  const stop = new AbortController();
  t.after(() => stop.abort());
  const written: Stored[] = [];
  const { resourceVersion } = (await client.list(CONFIG_MAPS, { namespace: NAMESPACE })).metadata;
  const watch = collect(client, resourceVersion, stop.signal);
  written.push(await client.create(CONFIG_MAPS, aConfigMap('first')));

  fill(ballast, 2 * 1024 * 1024);
  for (const round of ['a', 'b']) {
    const refusal = await writeUntilFull(client, round, written);
    assert.equal(refusal.code, 500);
    assert.equal(refusal.reason, 'InternalError');
    assert.match(refusal.message, /^Internal error occurred: Cannot write to .+store\.db: .*full.*; free some space/);
    fill(ballast, 0);
    await assert.rejects(client.create(CONFIG_MAPS, aConfigMap('also-refused')), { code: 500 });
    await assert.rejects(
      client.patch(CONFIG_MAPS, { namespace: NAMESPACE, name: 'first' }, { type: 'merge', body: { data: { more: 'y'.repeat(OBJECT_BYTES) } } }),
      { code: 500 },
    );

    assert.equal(await health(transport, '/readyz'), '500');
    assert.equal(await health(transport, '/livez'), 'ok');
    await checkAll(client, written);
    await watch.saw(written);
    const again = new AbortController();
    await collect(client, resourceVersion, again.signal).saw(written);
    again.abort();

    rmSync(ballast);
    written.push(await client.create(CONFIG_MAPS, aConfigMap(`${round}-room`)));
    assert.equal(await health(transport, '/readyz'), 'ok');
    await watch.saw(written);
    await checkAll(client, written);
    fill(ballast, 1024 * 1024);
  }

  // Killed and started again while full: refused in one line, and harmless.
  await writeUntilFull(client, 'c', written);
  fill(ballast, 0);
  await server.kill('SIGKILL');
  const { code, stderr } = await spawnServer(t, { dataDir }).exited;
  assert.equal(code, 1);
  assert.match(stderr, /^selfsame: Cannot [^\n]*no space left on device[^\n]*\n$/i);

  rmSync(ballast);
  const next = await startServer(t, { dataDir });
  const after = createClient(transportTo(t, next.access()));
  await checkAll(after, written);
  written.push(await after.create(CONFIG_MAPS, aConfigMap('after')));
  await checkAll(after, written);
  assert.equal((await next.kill('SIGTERM')).code, 0);
}

test('a full disk: writes are refused, reads and watches go on, and with room everything works again', async (t) => {
  const dir = temporaryDir(t);
  const reason = mountDisk(dir);
  if (reason !== undefined) {
    t.skip(reason);
    return;
  }
  try {
    await onFullDisk(t, dir);
  } finally {
    // Lazily: the server may still have files open.
    execFileSync('umount', ['-l', dir]);
  }
});
