/** Properties of every sequence of applies, checked against a model of leaves and their owners. */
import assert from 'node:assert/strict';
import { after, before, test, type TestContext } from 'node:test';
import { APPLIED_CRD, ApplyModel, leavesOf, ownedLeaves, randomSpec } from '#test/fuzz/apply-model.ts';
import { established } from '#test/fuzz/rich-kind.ts';
import { FULL_RUN } from '#test/support/full-run.ts';
import { createSeededRandom, type SeededRandom } from '#test/support/seeded-random.ts';
import { startTestApi, type TestResponse, type Loose, type TestApi } from '#test/support/test-api.ts';

const CRDS = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions';
const APPLIEDS = '/apis/fuzz.local/v1/namespaces/fuzz/applieds';
const CONFIG_MAPS = '/api/v1/namespaces/fuzz/configmaps';
const MANAGERS = ['anna', 'ben', 'carl'];
const EDITOR = 'editor';
const RUNS = FULL_RUN ? 1000 : 40;
const STEPS = 30;

let api: TestApi;

before(async () => {
  api = await startTestApi({ controllers: false });
  await api.ok('POST', '/api/v1/namespaces', {
    body: { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'fuzz' } },
  });
  await api.ok('POST', CRDS, { body: APPLIED_CRD });
  await api.ok('PATCH', `${CRDS}/${APPLIED_CRD.metadata.name}/status`, { body: established(APPLIED_CRD) });
});

after(() => api.stop());

function applied(name: string, spec: Loose): Loose {
  return { apiVersion: 'fuzz.local/v1', kind: 'Applied', metadata: { name }, spec };
}

function apply(url: string, body: Loose, manager: string, force = false): Promise<TestResponse> {
  const contentType = 'application/apply-patch+yaml';
  return api.call('PATCH', `${url}?fieldManager=${manager}&force=${force}`, { body, contentType });
}

/** Asserts that the apply writes nothing: the stored object is the same as before. */
async function assertNoOp(url: string, body: Loose, manager: string): Promise<void> {
  const stored = await api.ok('GET', url);
  const again = await apply(url, body, manager);
  assert.equal(again.status, 200, again.text);
  assert.deepEqual(again.body, stored);
  assert.deepEqual(await api.ok('GET', url), stored);
}

/** Returns an object as a client sends it back after a read. */
function readBack({ metadata, ...rest }: Loose): Loose {
  const { managedFields: _, ...kept } = metadata;
  return { ...rest, metadata: kept };
}

function forEachRun(t: TestContext, run: (random: SeededRandom, name: string) => Promise<void>): Promise<void> {
  const random = createSeededRandom(t);
  return Array.from({ length: RUNS }, (_, index) => `run-${index}`).reduce(
    (before, name) => before.then(() => run(random, name)),
    Promise.resolve(),
  );
}

test('applying the same configuration twice writes nothing', (t) =>
  forEachRun(t, async (random, name) => {
    const url = `${APPLIEDS}/twice-${name}`;
    for (const manager of MANAGERS) {
      const config = applied(`twice-${name}`, randomSpec(random));
      const { status, text } = await apply(url, config, manager, true);
      assert.ok(status < 300, text);
      await assertNoOp(url, config, manager);
    }
  }));

test('applying the live object as its owner writes nothing', (t) =>
  forEachRun(t, async (random, name) => {
    const url = `${APPLIEDS}/live-${name}`;
    await apply(url, applied(`live-${name}`, randomSpec(random)), 'anna');
    await assertNoOp(url, readBack(await api.ok('GET', url)), 'anna');

    const [map, data] = [`${CONFIG_MAPS}/live-${name}`, randomSpec(random).labels ?? { a: '1' }];
    await apply(
      map,
      { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: `live-${name}`, labels: data }, data },
      'anna',
    );
    await assertNoOp(map, readBack(await api.ok('GET', map)), 'anna');
  }));

test('with three managers and an editor in any order, owned leaves are kept and leaves without owner are removed', (t) =>
  forEachRun(t, async (random, name) => {
    const url = `${APPLIEDS}/many-${name}`;
    const model = new ApplyModel();
    const first = randomSpec(random);
    const steps = [`anna applies ${JSON.stringify(first)}`];
    await apply(url, applied(`many-${name}`, first), 'anna');
    model.apply('anna', leavesOf(first), false);
    for (let step = 0; step < STEPS; step++) {
      if (random.chance(0.2)) await edit(url, model, random, steps);
      else await applyAs(random.pick(MANAGERS), url, { name: `many-${name}`, model, random, steps });
      await assertModel(url, model, steps);
    }
  }));

interface Scene {
  readonly name: string;
  readonly model: ApplyModel;
  readonly random: SeededRandom;
  readonly steps: string[];
}

async function applyAs(manager: string, url: string, { name, model, random, steps }: Scene): Promise<void> {
  const spec = randomSpec(random);
  const force = random.chance(0.4);
  steps.push(`${manager} applies ${JSON.stringify(spec)}${force ? ' by force' : ''}`);
  const { status, text } = await apply(url, applied(name, spec), manager, force);
  const fits = model.apply(manager, leavesOf(spec), force);
  assert.equal(status, fits ? 200 : 409, `${steps.join('\n')}\n${text}`);
}

async function edit(url: string, model: ApplyModel, random: SeededRandom, steps: string[]): Promise<void> {
  const label = random.pick(['a', 'b', 'c']);
  const value = random.pick(['1', '2', null]);
  steps.push(`${EDITOR} sets label ${label} to ${value}`);
  await api.ok('PATCH', `${url}?fieldManager=${EDITOR}`, { body: { spec: { labels: { [label]: value } } } });
  model.set(EDITOR, `f:spec/f:labels/f:${label}`, value === null ? undefined : JSON.stringify(value));
}

async function assertModel(url: string, model: ApplyModel, steps: readonly string[]): Promise<void> {
  const { spec, metadata } = await api.ok('GET', url);
  const why = steps.join('\n');
  assert.deepEqual(sorted(leavesOf(spec)), sorted(model.values), why);
  for (const manager of [...MANAGERS, EDITOR]) {
    const entry = metadata.managedFields?.find((candidate: Loose) => candidate.manager === manager);
    // A map or a list that lost its last leaf may stay as an empty one that is owned.
    const owned = ownedLeaves(entry?.fieldsV1).filter((leaf) => model.values.has(leaf));
    assert.deepEqual(owned.sort(), model.ownedBy(manager).sort(), `what ${manager} owns after\n${why}`);
  }
}

function sorted(leaves: ReadonlyMap<string, string>): [string, string][] {
  return [...leaves].sort(([one], [other]) => (one < other ? -1 : 1));
}
