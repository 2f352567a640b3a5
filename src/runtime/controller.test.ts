/** A whole controller against a fake API: one Widget for each Gadget that wants one. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Informer } from '#client/informer.ts';
import { FakeApi } from '#client/testing/fake-api.ts';
import { FakeClock, settle } from '#client/testing/fake-clock.ts';
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
  const looks: string[] = [];
  const definition = defineController<GadgetWorld>({
    name: 'gadget-controller',
    type: GADGETS,
    sources: [source(gadgetInformer), source(widgetInformer, controllerKeys(GADGETS))],
    observe(key) {
      looks.push(key);
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
  return { api, clock, link, looks, running, lines, errors, stop };
}

test('brings the world to what is wished, and back again when somebody disturbs it', async () => {
  const { api, looks, stop } = await setUp({
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
  assert.ok(looks.length < 25, `it came to rest after ${looks.length} looks`);
  await stop();
});

test('a change is made once although its own events ask for another look', async () => {
  const { link, stop } = await setUp({ gadgets: [aGadget('a')] });
  assert.equal(link.count('POST'), 1);
  assert.equal(link.count('PUT'), 2, 'Empty, then Filled');
  await stop();
});

test('logs why each change is made', async () => {
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

test('looks again when the plan asks for it', async () => {
  const { clock, looks, stop } = await setUp({ gadgets: [aGadget('a')] });
  const before = looks.length;
  await clock.advance(60_000);
  assert.equal(looks.length, before + 1);
  await stop();
});

test('an error is logged once and tried again with rising delays', async () => {
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

test('what is due at a certain time is due then, also after a failure', async () => {
  const { api, clock, link, looks, stop } = await setUp();
  const broken = () => link.failures.push(new ApiError(403, 'Forbidden', 'quota exceeded'));
  // The status of a gadget that wants nothing cannot be written; its plan asks for a look every minute.
  for (let i = 0; i < 30; i++) broken();
  api.put(GADGETS, aGadget('a', { spec: { size: 0 } }));
  await clock.advance(600_000);
  const before = looks.length;
  await clock.advance(120_000);
  // By then a failure alone would wait for five minutes. Two minutes hold two looks, or three where one is at each end.
  const seen = looks.length - before;
  assert.ok(seen === 2 || seen === 3, `${seen} looks in two minutes`);
  await stop();
});

test('a conflict is only a reason to look again', async () => {
  const { api, clock, link, errors, stop } = await setUp();
  link.failures.push(conflict(GADGETS, 'a', MODIFIED));
  api.put(GADGETS, aGadget('a', { spec: { size: 0 } }));
  await clock.advance(100);
  assert.deepEqual(api.peek(GADGETS, 'default/a')?.status, { phase: 'Empty' });
  assert.deepEqual(errors(), []);
  await stop();
});

test('a fault in one object does not hold up the others, a wrong plan neither', async () => {
  const { api, clock, errors, link, stop } = await setUp({ concurrency: 2 });
  link.failures.push(new Error('ECONNRESET'));
  for (const name of ['a', 'b', 'c']) api.put(GADGETS, aGadget(name));
  await clock.advance(100);
  assert.equal(api.all(WIDGETS).length, 3);
  assert.equal(errors().length, 1);
  await stop();
});

test('survives a server that restarts and a history that is gone', async () => {
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

test('after the stop nothing is looked at any more', async () => {
  const { api, clock, looks, running, stop } = await setUp({ gadgets: [aGadget('a')] });
  await stop();
  const before = looks.length;
  running.enqueue('default/a');
  api.put(GADGETS, aGadget('b'));
  await clock.advance(120_000);
  assert.equal(looks.length, before);
});

const owners: Record<string, { reference: object; want: string[] }> = {
  'the controlling owner of that kind': { reference: {}, want: ['default/o'] },
  'another version of it': { reference: { apiVersion: 'test.local/v2' }, want: ['default/o'] },
  'an owner that does not control': { reference: { controller: false }, want: [] },
  'another kind': { reference: { kind: 'Other' }, want: [] },
  'the same kind of another group': { reference: { apiVersion: 'other.local/v1' }, want: [] },
};

for (const [sentence, { reference, want }] of Object.entries(owners)) {
  test(`keys of an owner: ${sentence}`, () => {
    const ownerReferences = [
      { apiVersion: 'test.local/v1', kind: 'Gadget', name: 'o', uid: 'u', controller: true, ...reference },
    ];
    assert.deepEqual(controllerKeys(GADGETS)(aGadget('a', { metadata: { ownerReferences } }) as Stored), want);
  });
}
