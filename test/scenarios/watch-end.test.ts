/** Watches that end without the client: after their timeout, with a last bookmark, whether the client reads or not. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FakeClock } from '#lib/testing/fake-clock.ts';
import { BOOKMARK_INTERVAL_MS, WATCH_LINGER_MS, WATCH_PIECE_BYTES, WATCH_TIMEOUT_MS } from '#engine/request/limits.ts';
import type { StreamSink } from '#engine/request/request.ts';
import { ADMIN, startTestApi } from '#test/support/test-api.ts';

class Sink implements StreamSink {
  readonly types: string[] = [];
  ended = false;
  readonly bufferedBytes: number;

  constructor(bufferedBytes: number) {
    this.bufferedBytes = bufferedBytes;
  }

  write(chunk: Buffer): void {
    for (const line of chunk.toString().trimEnd().split('\n')) {
      this.types.push((JSON.parse(line) as { type: string }).type);
    }
  }

  onDrain(): void {
    // A client that reads nothing never drains.
  }

  end(): void {
    this.ended = true;
  }
}

async function open(query: string, bufferedBytes: number) {
  const clock = new FakeClock();
  const api = await startTestApi({ clock, controllers: false });
  const namespace = { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'one' } };
  await api.ok('POST', '/api/v1/namespaces', { body: namespace });
  const response = await api.core.handler({
    method: 'GET',
    path: '/api/v1/namespaces',
    query: new URLSearchParams(query),
    user: ADMIN,
    accept: 'application/json',
    contentType: '',
    userAgent: 'test',
    body: async () => Buffer.alloc(0),
    signal: new AbortController().signal,
  });
  assert.ok('stream' in response);
  const sink = new Sink(bufferedBytes);
  response.stream(sink);
  return { clock, sink, stop: () => api.stop() };
}

test('a watch ends after its timeout, with a last bookmark', async () => {
  const { clock, sink, stop } = await open('watch=1&timeoutSeconds=10&allowWatchBookmarks=true', 0);
  await clock.advance(9_999);
  assert.deepEqual([sink.types, sink.ended], [['ADDED'], false]);
  await clock.advance(1);
  assert.deepEqual([sink.types, sink.ended], [['ADDED', 'BOOKMARK'], true]);
  assert.equal(clock.pendingTimers, 0, 'no watcher remains');
  await stop();
});

test('a watch without a timeout has a bookmark every minute, and ends within an hour', async () => {
  const { clock, sink, stop } = await open('watch=1&allowWatchBookmarks=true', 0);
  await clock.advance(3 * BOOKMARK_INTERVAL_MS);
  assert.deepEqual([sink.types, sink.ended], [['ADDED', 'BOOKMARK', 'BOOKMARK', 'BOOKMARK'], false]);
  await clock.advance(WATCH_TIMEOUT_MS);
  assert.equal(sink.ended, true);
  await stop();
});

test('a watch whose client reads nothing ends, too', async () => {
  const { clock, sink, stop } = await open('watch=1&timeoutSeconds=10', WATCH_PIECE_BYTES);
  await clock.advance(10_000);
  assert.deepEqual([sink.types, sink.ended], [[], false], 'buffered events can still be read');
  await clock.advance(WATCH_LINGER_MS);
  assert.equal(sink.ended, true);
  assert.equal(clock.pendingTimers, 0, 'no watcher remains');
  await stop();
});
