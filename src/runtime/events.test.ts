import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FakeApi } from '#client/testing/fake-api.ts';
import { FakeClock, settle } from '#lib/testing/fake-clock.ts';
import { FakeLink } from '#client/testing/fake-link.ts';
import { aGadget } from '#client/testing/gadgets.ts';
import { ApiError, alreadyExists, forbidden, notFound } from '#kube/api-error.ts';
import { createLog, silentLog, type Log } from '#lib/log.ts';
import { EVENTS, EventRecorder } from '#runtime/events.ts';

function setUp(log: Log = silentLog) {
  const api = new FakeApi();
  const clock = new FakeClock();
  const link = new FakeLink(api, [EVENTS]);
  const controller = new AbortController();
  const options = { writer: link.client, clock, log, component: 'test', instance: 'host-1' };
  const recorder = new EventRecorder({ ...options, signal: controller.signal });
  const about = aGadget('a', { metadata: { uid: 'u1', resourceVersion: '7' } });
  const record = (message = 'hello'): void => recorder.record(about, { type: 'Normal', reason: 'Greeted', message });
  return { api, clock, link, recorder, about, record, stop: () => controller.abort() };
}

test('an Event has the fields that kubectl shows', async () => {
  const { api, record, recorder } = setUp();
  record();
  await recorder.idle();
  const [event] = api.all(EVENTS);
  const { metadata, apiVersion: _, kind: __, ...rest } = event!;
  assert.match(metadata.name, /^a\.[a-z0-9]{16}$/);
  assert.equal(metadata.namespace, 'default');
  assert.deepEqual(rest, {
    involvedObject: {
      apiVersion: 'test.local/v1',
      kind: 'Gadget',
      namespace: 'default',
      name: 'a',
      uid: 'u1',
      resourceVersion: '7',
    },
    type: 'Normal',
    reason: 'Greeted',
    message: 'hello',
    source: { component: 'test' },
    reportingComponent: 'test',
    reportingInstance: 'host-1',
    count: 1,
    firstTimestamp: '2030-03-17T17:46:40Z',
    lastTimestamp: '2030-03-17T17:46:40Z',
  });
});

test('remembers Events for ten minutes only', async () => {
  const { clock, record, recorder } = setUp();
  for (let n = 0; n < 100; n++) record(`number ${n}`);
  await recorder.idle();
  assert.equal(recorder.knownCount, 100);
  await clock.advance(600_000);
  record();
  assert.equal(recorder.knownCount, 1);
});

test('counts a repeated Event within ten minutes, and creates a new one later', async () => {
  const { api, clock, record, recorder } = setUp();
  record();
  await clock.advance(500_000);
  record();
  record('something else');
  await clock.advance(599_999);
  record();
  await recorder.idle();
  const counts = () =>
    api.all(EVENTS).map(({ message, count, lastTimestamp }) => [message, count, lastTimestamp].join(' '));
  assert.deepEqual(counts(), ['hello 3 2030-03-17T18:04:59Z', 'something else 1 2030-03-17T17:55:00Z']);
  await clock.advance(600_000);
  record();
  await recorder.idle();
  assert.equal(api.all(EVENTS).length, 3);
});

test('sends Events that repeat while the server is slow once, with their count', async () => {
  const { api, link, record, recorder } = setUp();
  for (let i = 0; i < 5; i++) record();
  await recorder.idle();
  assert.deepEqual(
    api.all(EVENTS).map(({ count }) => count),
    [5],
  );
  assert.equal(link.requests.length, 1);
});

test('creates an Event again that the server has removed', async () => {
  const { api, record, recorder } = setUp();
  record();
  await recorder.idle();
  const [first] = api.all(EVENTS);
  api.remove(EVENTS, { namespace: 'default', name: first!.metadata.name });
  record();
  await recorder.idle();
  assert.deepEqual(
    api.all(EVENTS).map(({ count }) => count),
    [2],
  );
});

test('retries an unavailable server a few times, but not a refusal; neither affects the caller', async () => {
  const { api, clock, link, record, recorder } = setUp();
  link.failures.push(new Error('ECONNRESET'), new ApiError(503, 'ServiceUnavailable', 'busy'));
  record('one');
  await clock.advance(60_000);
  await recorder.idle();
  assert.equal(api.all(EVENTS).length, 1);
  link.failures.push(new ApiError(403, 'Forbidden', 'the namespace is being terminated'));
  record('two');
  await recorder.idle();
  assert.equal(api.all(EVENTS).length, 1);
  link.state = 'refused';
  record('three');
  await clock.advance(600_000);
  await recorder.idle();
  assert.equal(link.count('POST'), 3 + 1 + 5);
});

const TERMINATING = { causes: [{ reason: 'NamespaceTerminating', message: 'namespace default is being terminated' }] };
const refusals: Record<string, { readonly error: ApiError; readonly isLogged: boolean }> = {
  'a refusal is logged': { error: forbidden(EVENTS, 'a.1', 'no'), isLogged: true },
  'a namespace under deletion is not worth a warning': {
    error: new ApiError(403, 'Forbidden', 'the namespace is being terminated', { details: TERMINATING }),
    isLogged: false,
  },
  'nor is a namespace that was deleted': {
    error: notFound({ group: '', plural: 'namespaces' }, 'default'),
    isLogged: false,
  },
};
for (const [sentence, { error, isLogged }] of Object.entries(refusals)) {
  test(`drops an Event that cannot be written: ${sentence}`, async () => {
    const lines: string[] = [];
    const { api, link, record, recorder } = setUp(createLog('warn', { write: (line) => lines.push(line) }));
    link.failures.push(error);
    record();
    await recorder.idle();
    assert.deepEqual(api.all(EVENTS), []);
    assert.equal(lines.length, isLogged ? 1 : 0, lines.join(''));
  });
}

test('uses another name if one is taken, unless an earlier attempt has created the Event', async () => {
  const { api, clock, link, record, recorder } = setUp();
  link.failures.push(alreadyExists(EVENTS, 'a.1'));
  record('created under another name');
  await recorder.idle();
  link.afterWrite = () => {
    link.afterWrite = undefined;
    throw new Error('the response is lost');
  };
  record('created, but the response was lost');
  await clock.advance(2000);
  await recorder.idle();
  assert.deepEqual(
    api.all(EVENTS).map(({ message }) => message),
    ['created under another name', 'created, but the response was lost'],
  );
});

test('drops Events of a flood and recovers afterwards', async () => {
  const { api, link, record, recorder } = setUp();
  for (let i = 0; i < 5000; i++) record(`message ${i}`);
  await recorder.idle();
  assert.equal(link.requests.length, 1000);
  record('message 4999');
  await recorder.idle();
  assert.equal(api.all(EVENTS).at(-1)?.['message'], 'message 4999');
});

test('truncates long names and messages to the limits of the API, never inside a character', async () => {
  const { api, recorder, about } = setUp();
  const long = { ...about, metadata: { ...about.metadata, namespace: undefined, name: 'n'.repeat(253) } };
  recorder.record(long, { type: 'Warning', reason: 'Long', message: 'ä'.repeat(2000) });
  await recorder.idle();
  const [event] = api.all(EVENTS);
  assert.equal(event!.metadata.name.length, 253);
  assert.equal(event!.metadata.namespace, 'default');
  const message = event!['message'] as string;
  assert.ok(Buffer.byteLength(message) <= 1024);
  assert.match(message, /^ä+\.\.\.$/);
});

test('sends nothing after the stop', async () => {
  const { link, record, recorder, stop } = setUp();
  link.state = 'held';
  record();
  await settle();
  stop();
  record('more');
  await recorder.idle();
  assert.equal(link.requests.length, 1);
});
