import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createInProcessTransport } from '#client/in-process.ts';
import type { InProcessHandler, InProcessRequest, InProcessSink } from '#client/in-process.ts';
import { settle } from '#lib/testing/fake-clock.ts';
import type { Transport } from '#client/transport.ts';
import { notFound } from '#kube/api-error.ts';

const user = { name: 'system:test', groups: ['system:masters'] };

function transportTo(handler: InProcessHandler): Transport {
  return createInProcessTransport({ handler, user, userAgent: 'test' });
}

test('passes the request like the HTTP server and parses the response for each caller', async () => {
  const requests: InProcessRequest[] = [];
  const body = [Buffer.from('{"metadata":'), Buffer.from('{"name":"ä"}}')];
  const transport = transportTo(async (request) => {
    requests.push(request);
    return { status: 201, body, warnings: ['w'] };
  });
  const query = new URLSearchParams({ dryRun: 'All' });
  const sent = { method: 'POST', path: '/api/v1/x', query, body: { a: 1 } } as const;
  const first = await transport.request(sent);
  const second = await transport.request(sent);
  assert.deepEqual(first, { status: 201, body: { metadata: { name: 'ä' } }, warnings: ['w'] });
  assert.notEqual(first.body, second.body);
  const [request] = requests;
  assert.equal(request?.contentType, 'application/json');
  assert.equal(request?.user, user);
  assert.equal(request?.query.get('dryRun'), 'All');
  assert.equal((await request?.body())?.toString(), '{"a":1}');
});

test('throws the Status of a response that is not 2xx', async () => {
  const error = notFound({ group: '', plural: 'pods' }, 'a');
  const transport = transportTo(async () => ({ status: 404, body: Buffer.from(JSON.stringify(error.toStatus())) }));
  await assert.rejects(transport.request({ method: 'GET', path: '/' }), /ApiError: pods "a" not found/);
  await assert.rejects(async () => {
    for await (const _ of transport.stream({ method: 'GET', path: '/' })) assert.fail();
  }, /ApiError: pods "a" not found/);
});

test('stops waiting on abort, even if the handler ignores the signal', async () => {
  const controller = new AbortController();
  const transport = transportTo(() => new Promise(() => {}));
  const response = transport.request({ method: 'GET', path: '/', signal: controller.signal });
  controller.abort(new Error('enough'));
  await assert.rejects(response, /enough/);
});

function startStream() {
  const state = { sink: undefined as InProcessSink | undefined, stopped: 0 };
  const transport = transportTo(async () => ({
    status: 200,
    stream(sink) {
      state.sink = sink;
      sink.write(Buffer.from('{"n":0}\n'));
      return () => void state.stopped++;
    },
  }));
  return { state, transport };
}

test('yields the lines of a stream as they arrive and ends with the server', async () => {
  const { state, transport } = startStream();
  const lines = transport.stream({ method: 'GET', path: '/' })[Symbol.asyncIterator]();
  assert.deepEqual((await lines.next()).value, { n: 0 });
  const next = lines.next();
  await settle();
  state.sink?.write(Buffer.from('{"n"'));
  state.sink?.write(Buffer.from(':1}\n{"n":2}\n'));
  assert.deepEqual((await next).value, { n: 1 });
  state.sink?.end();
  assert.deepEqual((await lines.next()).value, { n: 2 });
  assert.equal((await lines.next()).done, true);
  assert.equal(state.stopped, 1);
});

test('notifies the server once when a stream is left or aborted', async () => {
  const left = startStream();
  for await (const _ of left.transport.stream({ method: 'GET', path: '/' })) break;
  assert.equal(left.state.stopped, 1);

  const aborted = startStream();
  const controller = new AbortController();
  const stream = aborted.transport.stream({ method: 'GET', path: '/', signal: controller.signal });
  const lines = stream[Symbol.asyncIterator]();
  await lines.next();
  const next = lines.next();
  await settle();
  controller.abort(new Error('enough'));
  await assert.rejects(next, /enough/);
  assert.equal(aborted.state.stopped, 1);
});

test('the sink shows how much is unread, so that the server can disconnect a slow reader', async () => {
  const { state, transport } = startStream();
  const lines = transport.stream({ method: 'GET', path: '/' })[Symbol.asyncIterator]();
  await lines.next();
  const line = Buffer.from(`"${'x'.repeat(300_000)}"\n`);
  let drained = 0;
  for (let i = 0; i < 4; i++) state.sink!.write(line);
  state.sink!.onDrain(() => drained++);
  assert.equal(state.sink!.bufferedBytes, 4 * line.length);
  for (let i = 0; i < 4; i++) await lines.next();
  assert.equal(state.sink!.bufferedBytes, 0);
  const more = lines.next();
  state.sink!.write(line);
  await more;
  assert.equal(drained, 1);
  await lines.return?.();
});
