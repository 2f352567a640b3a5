/** A complete controller on a fake API: one Widget for each Gadget with a size. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Informer } from '#client/informer.ts';
import { FakeApi } from '#client/testing/fake-api.ts';
import { FakeClock, settle } from '#lib/testing/fake-clock.ts';
import { FakeLink } from '#client/testing/fake-link.ts';
import { GADGETS, aGadget } from '#client/testing/gadgets.ts';
import type { Gadget } from '#client/testing/gadgets.ts';
import { ApiError, MODIFIED, conflict } from '#kube/api-error.ts';
import type { KubeObject, ResourceType, Stored } from '#kube/meta.ts';
import { createLog } from '#lib/log.ts';
import { controllerKeys, defineController, source, startController } from '#runtime/controller.ts';
import type { Plan } from '#runtime/plan.ts';

const WIDGETS: ResourceType = { ...GADGETS, kind: 'Widget', plural: 'widgets' };

interface GadgetWorld {
  gadget: Stored<Gadget>;
  widget: Stored | undefined;
}

function decide({ gadget, widget }: GadgetWorld): Plan {
  const { namespace, name, uid } = gadget.metadata;
  const wanted = gadget.metadata.deletionTimestamp === undefined && (gadget.spec?.size ?? 0) > 0;
  const status = { phase: widget === undefined ? 'Empty' : 'Filled' };
  if (wanted && widget === undefined) {
    const ownerReferences = [{ apiVersion: 'test.local/v1', kind: 'Gadget', name, uid, controller: true }];
    const object: KubeObject = {
      apiVersion: 'test.local/v1',
      kind: 'Widget',
      metadata: { namespace, name, ownerReferences },
    };
    return { changes: [{ do: 'create', type: WIDGETS, object, why: 'the gadget wants a widget' }], status };
  }
  if (!wanted && widget !== undefined) {
    const change = {
      do: 'delete',
      type: WIDGETS,
      name: { namespace, name },
      uid: widget.metadata.uid,
      why: 'not wanted',
    } as const;
    return { changes: [change], status };
  }
  return { changes: [], status, requeueAfterMs: 60_000 };
}

async function setUp({ gadgets = [] as Gadget[], concurrency = 1 } = {}) {
  const api = new FakeApi();
  const clock = new FakeClock();
  const link = new FakeLink(api, [GADGETS, WIDGETS]);
  for (const gadget of gadgets) api.put(GADGETS, gadget);
  const abort = new AbortController();
  const { signal } = abort;
  const lines: string[] = [];
  const log = createLog('info', { write: (line) => lines.push(line) });
  const gadgetInformer = new Informer({ reader: link.client, type: GADGETS, clock, log });
  const widgetInformer = new Informer({ reader: link.client, type: WIDGETS, clock, log });
  const observed: string[] = [];
  const definition = defineController<GadgetWorld>({
    name: 'gadget-controller',
    type: GADGETS,
    sources: [source(gadgetInformer), source(widgetInformer, controllerKeys(GADGETS))],
    observe(key) {
      observed.push(key);
      const gadget = gadgetInformer.get(key);
      return gadget && { gadget, widget: widgetInformer.get(key) };
    },
    decide,
    subject: ({ gadget }) => gadget,
    concurrency,
  });
  const running = startController(definition, { client: link.client, clock, log, signal });
  void gadgetInformer.start({ signal });
  void widgetInformer.start({ signal });
  await running.idle();
  await settle();
  const stop = async (): Promise<void> => {
    abort.abort();
    await running.stopped;
  };
  const errors = () => lines.filter((line) => line.includes('Cannot reconcile'));
  return { api, clock, link, observed, running, lines, errors, stop };
}

test('reaches the desired state, and again after an outside change', async () => {
  const { api, observed, stop } = await setUp({
    gadgets: [aGadget('a'), aGadget('b'), aGadget('zero', { spec: { size: 0 } })],
  });
  const widgets = () => api.all(WIDGETS).map(({ metadata }) => metadata.name);
  assert.deepEqual(widgets(), ['a', 'b']);
  assert.deepEqual(api.peek(GADGETS, 'default/a')?.status, { phase: 'Filled' });
  assert.deepEqual(api.peek(GADGETS, 'default/zero')?.status, { phase: 'Empty' });
  api.remove(WIDGETS, { namespace: 'default', name: 'b' });
  await settle();
  assert.deepEqual(widgets(), ['a', 'b']);
  api.put(GADGETS, aGadget('a', { spec: { size: 0 } }));
  await settle();
  assert.deepEqual(widgets(), ['b']);
  assert.ok(observed.length < 25, `it became idle after ${observed.length} reconciles`);
  await stop();
});

test('applies a change once although its own events cause another reconcile', async () => {
  const { link, stop } = await setUp({ gadgets: [aGadget('a')] });
  assert.equal(link.count('POST'), 1);
  assert.equal(link.count('PUT'), 2, 'Empty, then Filled');
  await stop();
});

test('logs the reason of each change', async () => {
  const { lines, stop } = await setUp({ gadgets: [aGadget('a')] });
  const line = lines
    .map((text) => JSON.parse(text) as Record<string, unknown>)
    .find(({ change }) => change === 'create');
  assert.deepEqual(
    [line?.['msg'], line?.['controller'], line?.['key'], line?.['object']],
    ['the gadget wants a widget', 'gadget-controller', 'default/a', 'widgets.test.local default/a'],
  );
  await stop();
});

test('reconciles again when the plan requests it', async () => {
  const { clock, observed, stop } = await setUp({ gadgets: [aGadget('a')] });
  const before = observed.length;
  await clock.advance(60_000);
  assert.equal(observed.length, before + 1);
  await stop();
});

test('logs an error once and retries with growing delays', async () => {
  const { api, clock, link, errors, stop } = await setUp();
  for (let i = 0; i < 3; i++) link.failures.push(new ApiError(403, 'Forbidden', 'quota exceeded'));
  api.put(GADGETS, aGadget('a', { spec: { size: 0 } }));
  await settle();
  assert.equal(errors().length, 1);
  await clock.advance(100);
  assert.equal(errors().length, 3);
  const failures = errors().map((line) => (JSON.parse(line) as { failures: number }).failures);
  assert.deepEqual(failures, [1, 2, 3]);
  assert.deepEqual(api.peek(GADGETS, 'default/a')?.status, { phase: 'Empty' });
  await stop();
});

test('reconciles at the requested time, also after a failure', async () => {
  const { api, clock, link, observed, stop } = await setUp();
  const failNext = () => link.failures.push(new ApiError(403, 'Forbidden', 'quota exceeded'));
  // The status of a gadget without a widget cannot be written; its plan requests a reconcile every minute.
  for (let i = 0; i < 30; i++) failNext();
  api.put(GADGETS, aGadget('a', { spec: { size: 0 } }));
  await clock.advance(600_000);
  const before = observed.length;
  await clock.advance(120_000);
  // The backoff alone would be five minutes by now. Two minutes contain two reconciles, or three if one is at each end.
  const seen = observed.length - before;
  assert.ok(seen === 2 || seen === 3, `${seen} reconciles in two minutes`);
  await stop();
});

test('reconciles again after a conflict, without an error', async () => {
  const { api, clock, link, errors, stop } = await setUp();
  link.failures.push(conflict(GADGETS, 'a', MODIFIED));
  api.put(GADGETS, aGadget('a', { spec: { size: 0 } }));
  await clock.advance(100);
  assert.deepEqual(api.peek(GADGETS, 'default/a')?.status, { phase: 'Empty' });
  assert.deepEqual(errors(), []);
  await stop();
});

test('an error of one object does not block the others', async () => {
  const { api, clock, errors, link, stop } = await setUp({ concurrency: 2 });
  link.failures.push(new Error('ECONNRESET'));
  for (const name of ['a', 'b', 'c']) api.put(GADGETS, aGadget(name));
  await clock.advance(100);
  assert.equal(api.all(WIDGETS).length, 3);
  assert.equal(errors().length, 1);
  await stop();
});

test('recovers from a restarted server and an expired revision', async () => {
  const { api, clock, link, stop } = await setUp({ gadgets: [aGadget('a')] });
  link.state = 'refused';
  api.restart();
  api.put(GADGETS, aGadget('b'));
  api.remove(WIDGETS, { namespace: 'default', name: 'a' });
  api.compact();
  await clock.advance(10_000);
  link.state = 'up';
  await clock.advance(30_000);
  assert.deepEqual(
    api
      .all(WIDGETS)
      .map(({ metadata }) => metadata.name)
      .sort(),
    ['a', 'b'],
  );
  await stop();
});

test('reconciles nothing after it has stopped', async () => {
  const { api, clock, observed, running, stop } = await setUp({ gadgets: [aGadget('a')] });
  await stop();
  const before = observed.length;
  running.enqueue('default/a');
  api.put(GADGETS, aGadget('b'));
  await clock.advance(120_000);
  assert.equal(observed.length, before);
});

const owners: Record<string, { reference: object; want: string[] }> = {
  'the controlling owner of that kind': { reference: {}, want: ['default/o'] },
  'also in another version': { reference: { apiVersion: 'test.local/v2' }, want: ['default/o'] },
  'not an owner that does not control': { reference: { controller: false }, want: [] },
  'not another kind': { reference: { kind: 'Other' }, want: [] },
  'not the same kind of another group': { reference: { apiVersion: 'other.local/v1' }, want: [] },
};

for (const [sentence, { reference, want }] of Object.entries(owners)) {
  test(`controllerKeys returns ${sentence}`, () => {
    const ownerReferences = [
      { apiVersion: 'test.local/v1', kind: 'Gadget', name: 'o', uid: 'u', controller: true, ...reference },
    ];
    assert.deepEqual(controllerKeys(GADGETS)(aGadget('a', { metadata: { ownerReferences } }) as Stored), want);
  });
}
