import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Informer } from '#client/informer.ts';
import { FakeApi } from '#client/testing/fake-api.ts';
import { FakeClock, settle } from '#lib/testing/fake-clock.ts';
import { FakeLink } from '#client/testing/fake-link.ts';
import { GADGETS, aGadget } from '#client/testing/gadgets.ts';
import { ApiError, conflict, isApiError, MODIFIED, INAPPLICABLE_PATCH } from '#kube/api-error.ts';
import type { KubeObject, ResourceType, Stored } from '#kube/meta.ts';
import { silentLog } from '#lib/log.ts';
import { applyPlan, isStale, PlanFailure } from '#runtime/apply.ts';
import type { EventNote } from '#runtime/events.ts';
import { MAX_CHANGES } from '#runtime/plan.ts';
import type { Change, Plan } from '#runtime/plan.ts';

const WIDGETS: ResourceType = { ...GADGETS, kind: 'Widget', plural: 'widgets' };
const WRITES = ['POST', 'PUT', 'PATCH', 'DELETE'];

async function setUp() {
  const api = new FakeApi();
  const clock = new FakeClock();
  const link = new FakeLink(api, [GADGETS, WIDGETS]);
  const owner = api.put(GADGETS, aGadget('owner'));
  const controller = new AbortController();
  const { signal } = controller;
  const caches = [GADGETS, WIDGETS].map((type) => new Informer({ reader: link.client, type, clock, log: silentLog }));
  for (const cache of caches) void cache.start({ signal });
  await Promise.all(caches.map((cache) => cache.waitForSync()));
  await settle();
  const events: string[] = [];
  const sink = {
    record: (about: KubeObject, note: EventNote) =>
      events.push(`${about.metadata.name} ${note.type} ${note.reason}: ${note.message}`),
  };
  const context = { client: link.client, clock, log: silentLog, events: sink, caches, fieldManager: 'test', signal };
  const apply = (plan: Plan, object: Stored = owner) => applyPlan(plan, { type: GADGETS, object }, context);
  /** Returns the verbs of all writes. */
  const writes = () =>
    link.requests
      .filter((request) => WRITES.some((verb) => request.startsWith(verb)))
      .map((request) => request.split(' ')[0]);
  return { api, clock, link, owner, caches, events, apply, writes, stop: () => controller.abort() };
}

function child(owner: Stored, overrides: Partial<KubeObject['metadata']> = {}): KubeObject {
  const { name, uid } = owner.metadata;
  const ownerReferences = [{ apiVersion: 'test.local/v1', kind: 'Gadget', name, uid, controller: true }];
  const metadata = { namespace: 'default', name: `${name}-child`, ownerReferences, ...overrides };
  return { apiVersion: 'test.local/v1', kind: 'Widget', metadata, spec: { size: 1 } };
}

const create = (object: KubeObject): Change => ({ do: 'create', type: WIDGETS, object, why: 'the owner has no child' });
const remove = ({ metadata: { namespace, name, uid } }: Stored): Change => ({
  do: 'delete',
  type: WIDGETS,
  name: { namespace, name },
  uid,
  why: 'the child is not wanted',
});
const patchSize = ({ metadata: { namespace, name, uid } }: Stored, size: number): Change => ({
  do: 'patch',
  type: WIDGETS,
  name: { namespace, name },
  uid,
  patch: { type: 'merge', body: { spec: { size } } },
  why: `the child has the wrong size`,
});

const patchJson = ({ metadata: { namespace, name, uid } }: Stored, body: readonly object[]): Change => ({
  do: 'patch',
  type: WIDGETS,
  name: { namespace, name },
  uid,
  patch: { type: 'json', body },
  why: `the child has the wrong size`,
});
const testAndSet = (size: number) => [
  { op: 'test', path: '/spec/size', value: size },
  { op: 'add', path: '/spec/size', value: 9 },
];
const inapplicable = () => new ApiError(422, 'Invalid', INAPPLICABLE_PATCH);

type World = Awaited<ReturnType<typeof setUp>>;

interface Case {
  run(world: World): Promise<void>;
  writes?: string[];
  events?: string[];
  /** The size of the child afterwards. */
  size?: number | undefined;
}

const CREATED = 'owner Normal SuccessfulCreate: the owner has no child';

const cases: Record<string, Case> = {
  'applies changes in order and records Events': {
    async run({ apply, owner, api }) {
      await apply({ changes: [create(child(owner))] });
      const made = api.peek(WIDGETS, 'default/owner-child')!;
      const changes = [
        { ...patchSize(made, 2), reason: 'Resized' },
        patchSize(made, 3),
        { ...remove(made), reason: 'Unwanted' },
        create(child(owner)),
      ];
      await apply({ changes });
    },
    writes: ['POST', 'PATCH', 'PATCH', 'DELETE', 'POST'],
    events: [
      CREATED,
      'owner Normal Resized: the child has the wrong size',
      'owner Normal Unwanted: the child is not wanted',
      CREATED,
    ],
    size: 1,
  },
  'applies a repeated plan only once': {
    async run({ apply, owner }) {
      const plan = { changes: [create(child(owner))], status: { phase: 'Ready' } };
      await apply(plan);
      await apply({ changes: plan.changes });
    },
    writes: ['PUT', 'POST', 'POST'],
    events: [CREATED],
    size: 1,
  },
  'fails if an object with that name has another owner': {
    async run({ apply, owner, api }) {
      api.put(WIDGETS, child(owner, { ownerReferences: [] }));
      await assert.rejects(apply({ changes: [create(child(owner))] }), (error: unknown) =>
        isApiError(error, 'AlreadyExists'),
      );
    },
    events: [
      'owner Warning FailedCreate: Cannot create widgets.test.local default/owner-child: widgets.test.local "owner-child" already exists',
    ],
    size: 1,
  },
  'is stale if an object with that name is being deleted': {
    async run({ apply, owner, api }) {
      const old = api.put(WIDGETS, child(owner, { finalizers: ['test.local/hold'] }));
      api.delete(WIDGETS, 'default/owner-child', { uid: old.metadata.uid });
      await assert.rejects(apply({ changes: [create(child(owner))] }), (error: unknown) =>
        isApiError(error, 'Conflict'),
      );
    },
    events: [],
    size: 1,
  },
  'ignores a delete of an absent object and records no Event': {
    async run({ apply, owner, api }) {
      const made = api.put(WIDGETS, child(owner));
      api.remove(WIDGETS, { namespace: 'default', name: 'owner-child' });
      await apply({ changes: [remove(made)] });
    },
    events: [],
    size: undefined,
  },
  'never deletes another object with the same name': {
    async run({ apply, owner, api }) {
      const made = api.put(WIDGETS, child(owner));
      api.remove(WIDGETS, { namespace: 'default', name: 'owner-child' });
      api.put(WIDGETS, child(owner));
      await assert.rejects(apply({ changes: [remove(made)] }), (error: unknown) => isApiError(error, 'Conflict'));
    },
    events: [],
    size: 1,
  },
  'never patches another object with the same name if the uid is given': {
    async run({ apply, owner, api }) {
      const made = api.put(WIDGETS, child(owner));
      api.remove(WIDGETS, { namespace: 'default', name: 'owner-child' });
      await assert.rejects(apply({ changes: [patchSize(made, 9)] }), (error: unknown) => isApiError(error, 'Conflict'));
      api.put(WIDGETS, child(owner));
      await assert.rejects(apply({ changes: [patchSize(made, 9)] }), (error: unknown) => isApiError(error, 'Conflict'));
    },
    events: [],
    size: 1,
  },
  'is stale if the test of a JSON patch fails': {
    async run({ apply, owner, api, link }) {
      const made = api.put(WIDGETS, child(owner));
      link.failures.push(inapplicable());
      await assert.rejects(apply({ changes: [patchJson(made, testAndSet(7))], continueOnError: true }), isStale);
    },
    events: [],
    size: 1,
  },
  'is stale if the test of a refused JSON patch passes again': {
    async run({ apply, owner, api, link }) {
      const made = api.put(WIDGETS, child(owner));
      link.failures.push(inapplicable());
      await assert.rejects(apply({ changes: [patchJson(made, testAndSet(1))], continueOnError: true }), isStale);
    },
    events: [],
    size: 1,
  },
  'fails if a JSON patch can never be applied': {
    async run({ apply, owner, api, link }) {
      const made = api.put(WIDGETS, child(owner));
      link.failures.push(inapplicable());
      const body = [...testAndSet(1), { op: 'remove', path: '/spec/nothing' }];
      await assert.rejects(apply({ changes: [patchJson(made, body)] }), { message: INAPPLICABLE_PATCH });
    },
    events: [`owner Warning FailedPatch: Cannot patch widgets.test.local default/owner-child: ${INAPPLICABLE_PATCH}`],
    size: 1,
  },
  'stops at the first failed change': {
    async run({ apply, owner, link }) {
      link.failures.push(new ApiError(403, 'Forbidden', 'quota exceeded'));
      const other = child(owner, { name: 'other' });
      await assert.rejects(apply({ changes: [create(other), create(child(owner))] }), /quota exceeded/);
    },
    writes: ['POST'],
    events: ['owner Warning FailedCreate: Cannot create widgets.test.local default/other: quota exceeded'],
    size: undefined,
  },
  'with continueOnError, applies all changes and reports all failures': {
    async run({ apply, owner, link }) {
      link.failures.push(new ApiError(403, 'Forbidden', 'quota exceeded'), conflict(WIDGETS, 'third', MODIFIED));
      const names = ['other', 'third'].map((name) => create(child(owner, { name })));
      const plan: Plan = { changes: [...names, create(child(owner))], continueOnError: true };
      await assert.rejects(apply(plan), (error: unknown) => {
        assert.ok(error instanceof PlanFailure && !isStale(error));
        assert.equal(error.message, 'Cannot apply 2 of 3 changes: widgets.test.local default/other: quota exceeded');
        assert.deepEqual(
          error.failures.map(({ change }) => change),
          names,
        );
        return true;
      });
    },
    writes: ['POST', 'POST', 'POST'],
    events: ['owner Warning FailedCreate: Cannot create widgets.test.local default/other: quota exceeded', CREATED],
    size: 1,
  },
  'with continueOnError, is stale if all failures are': {
    async run({ apply, owner, link }) {
      link.failures.push(conflict(WIDGETS, 'other', MODIFIED));
      const changes = [create(child(owner, { name: 'other' })), create(child(owner))];
      await assert.rejects(apply({ changes, continueOnError: true }), isStale);
    },
    size: 1,
  },
  'writes a changed status to its subresource': {
    async run({ apply, api, link }) {
      await apply({ changes: [], status: { phase: 'Ready', ready: undefined } });
      assert.equal(link.count('PUT /apis/test.local/v1/namespaces/default/gadgets/owner/status?fieldManager=test'), 1);
      const owner = api.peek(GADGETS, 'default/owner')!;
      assert.deepEqual(owner.status, { phase: 'Ready' });
      await apply({ changes: [], status: { ready: undefined, phase: 'Ready' } }, owner);
    },
    writes: ['PUT'],
  },
  'stops before any change if the status is outdated': {
    async run({ apply, api, owner }) {
      api.put(GADGETS, aGadget('owner', { spec: { size: 7 } }));
      const plan = { changes: [create(child(owner))], status: { phase: 'Ready' } };
      await assert.rejects(apply(plan), (error: unknown) => isApiError(error, 'Conflict'));
    },
    writes: ['PUT'],
    events: [],
    size: undefined,
  },
  'writes nothing of a plan that is too long': {
    async run({ apply, owner }) {
      const changes = Array.from({ length: MAX_CHANGES + 1 }, (_, i) => create(child(owner, { name: `c${i}` })));
      await assert.rejects(apply({ changes }), /Invariant broken: a plan has at most 150 changes, this one has 151/);
    },
    writes: [],
  },
};

for (const [sentence, { run, ...want }] of Object.entries(cases)) {
  test(`apply: ${sentence}`, async () => {
    const world = await setUp();
    await run(world);
    const { api, writes, events, stop } = world;
    if (want.writes !== undefined) assert.deepEqual(writes(), want.writes);
    if (want.events !== undefined) assert.deepEqual(events, want.events);
    if ('size' in want) {
      const spec = api.peek(WIDGETS, 'default/owner-child')?.['spec'] as { size?: number } | undefined;
      assert.equal(spec?.size, want.size);
    }
    stop();
  });
}

test('apply returns only after the caches show the writes', async () => {
  const { apply, owner, caches, api, stop } = await setUp();
  const widgets = caches[1]!;
  await apply({ changes: [create(child(owner))] });
  const made = widgets.get('default/owner-child');
  assert.ok(made);
  await apply({ changes: [remove(made)] });
  assert.equal(widgets.get('default/owner-child'), undefined);
  const held = api.put(WIDGETS, child(owner, { finalizers: ['test.local/hold'] }));
  await settle();
  await apply({ changes: [remove(held)] });
  assert.ok(widgets.get('default/owner-child')?.metadata.deletionTimestamp);
  stop();
});

test('apply waits at most ten seconds for a cache', async () => {
  const { apply, owner, api, clock, stop } = await setUp();
  api.breakWatches('silence');
  let done = false;
  const applied = apply({ changes: [create(child(owner))] }).then(() => (done = true));
  await clock.advance(9999);
  assert.equal(done, false);
  await clock.advance(1);
  await applied;
  stop();
});
