import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createInProcessTransport } from '#client/in-process.ts';
import type { InProcessHandler, InProcessRequest, InProcessSink } from '#client/in-process.ts';
import { settle } from '#client/testing/fake-clock.ts';
import type { Transport } from '#client/transport.ts';
import { notFound } from '#kube/api-error.ts';

const user = { name: 'system:test', groups: ['system:masters'] };

function over(handler: InProcessHandler): Transport {
  return createInProcessTransport({ handler, user, userAgent: 'test' });
}

test('hands the request over as the HTTP server would, and parses the answer anew', async () => {
  const requests: InProcessRequest[] = [];
  const body = [Buffer.from('{"metadata":'), Buffer.from('{"name":"ä"}}')];
  const transport = over(async (request) => {
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

test('an answer that is not 2xx is its Status as an error', async () => {
  const error = notFound({ group: '', plural: 'pods' }, 'a');
  const transport = over(async () => ({ status: 404, body: Buffer.from(JSON.stringify(error.toStatus())) }));
  await assert.rejects(transport.request({ method: 'GET', path: '/' }), /ApiError: pods "a" not found/);
  await assert.rejects(async () => {
    for await (const _ of transport.stream({ method: 'GET', path: '/' })) assert.fail();
  }, /ApiError: pods "a" not found/);
});

test('an abort ends the wait for a handler that does not look at it', async () => {
  const controller = new AbortController();
  const transport = over(() => new Promise(() => {}));
  const answer = transport.request({ method: 'GET', path: '/', signal: controller.signal });
  controller.abort(new Error('enough'));
  await assert.rejects(answer, /enough/);
});

function streaming() {
  const state = { sink: undefined as InProcessSink | undefined, stopped: 0 };
  const transport = over(async () => ({
    status: 200,
    stream(sink) {
      state.sink = sink;
      sink.write(Buffer.from('{"n":0}\n'));
      return () => void state.stopped++;
    },
  }));
  return { state, transport };
}

test('a stream gives its lines as they come, and ends with the server', async () => {
  const { state, transport } = streaming();
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

test('leaving a stream, or an abort, tells the server once', async () => {
  const left = streaming();
  for await (const _ of left.transport.stream({ method: 'GET', path: '/' })) break;
  assert.equal(left.state.stopped, 1);

  const aborted = streaming();
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

test('a reader that does not read shows in the sink, so that the server can cut it off', async () => {
  const { state, transport } = streaming();
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
