import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ConfigMap } from '#kube/core-kinds.ts';
import {
  chunkOf,
  buildPlanConfigMaps,
  buildProgressConfigMap,
  readPlan,
  readProgress,
  type EntryNote,
  type PlanEntry,
} from '#api/machine-types/plan.ts';
import { JOB } from '#api/machine-types/testing/sample-transition.ts';

const LIMIT_BYTES = 256 * 1024;

function entries(count: number, length = 8): PlanEntry[] {
  return Array.from({ length: count }, (_, at) => ({
    namespace: 'ns',
    name: `vm-${at}`.padEnd(length, 'x'),
    uid: `uid-${at}`,
    ...(at % 2 === 0 ? { vmiUid: `vmi-${at}` } : {}),
    act: 'clear',
    from: 'pc-q35-rhel8.2.0',
    to: 'q35',
  }));
}

const bytesOf = ({ data = {} }: ConfigMap) => Buffer.byteLength(Object.values(data).join(''));
const names = (maps: readonly ConfigMap[]) => maps.map(({ metadata }) => metadata.name);

const sizes: Record<string, [given: PlanEntry[], chunks: number]> = {
  'an empty plan': [[], 1],
  'a small plan': [entries(3), 1],
  'as many entries as one part holds': [entries(400), 1],
  'one entry more than a part holds': [entries(401), 2],
  'thousands of entries': [entries(5000), 13],
  'long entries': [entries(400, 2000), 4],
};

for (const [name, [given, chunks]] of Object.entries(sizes)) {
  test(`${name}: ${chunks} parts`, () => {
    const maps = buildPlanConfigMaps(JOB, given);
    assert.equal(maps.length, chunks);
    for (const map of maps) assert.ok(bytesOf(map) <= LIMIT_BYTES);
    // Lists of the server come in the order of names.
    const listed = maps.toSorted((a, b) => (a.metadata.name! < b.metadata.name! ? -1 : 1));
    assert.deepEqual(readPlan(JOB, listed), given);
  });
}

test('a part is owned by its Job', () => {
  const [{ metadata }] = buildPlanConfigMaps(JOB, entries(1)) as [ConfigMap];
  assert.deepEqual(metadata, {
    name: 'convert-machine-type-x-plan-0',
    namespace: 'selfsame-system',
    labels: { 'selfsame.io/machine-types': 'job-uid' },
    ownerReferences: [
      { apiVersion: 'batch/v1', kind: 'Job', name: 'convert-machine-type-x', uid: 'job-uid', controller: true },
    ],
  });
});

test('a plan with a missing part is ignored', () => {
  const maps = buildPlanConfigMaps(JOB, entries(1000));
  for (const missing of maps) {
    const rest = maps.filter((map) => map !== missing);
    assert.equal(readPlan(JOB, rest), undefined, `without ${missing.metadata.name}`);
  }
  assert.equal(readPlan(JOB, []), undefined);
});

test('parts of plans of different sizes are ignored', () => {
  const [first, ...others] = buildPlanConfigMaps(JOB, entries(1000)) as [ConfigMap, ...ConfigMap[]];
  const again = buildPlanConfigMaps(JOB, entries(500));
  assert.equal(readPlan(JOB, [again[0]!, ...others]), undefined);
  assert.equal(readPlan(JOB, [first, again[1]!, others[1]!]), undefined);
});

test('ConfigMaps of an earlier Job of the same name are ignored', () => {
  const another = { ...JOB, uid: 'another' };
  const maps = buildPlanConfigMaps(another, entries(1));
  assert.equal(readPlan(JOB, maps), undefined);
  assert.equal(readProgress(JOB, [buildProgressConfigMap(another, 0, new Map([[0, { state: 'done' }]]))]).size, 0);
});

test('notes are read by the index of their entry', () => {
  const notes = new Map<number, EntryNote>([
    [0, { state: 'done' }],
    [399, { state: 'failed', reason: 'cannot start', at: '2026-01-01T12:00:00Z' }],
    [400, { state: 'restarting', vmiUid: 'later' }],
  ]);
  assert.deepEqual([...notes.keys()].map(chunkOf), [0, 0, 1]);
  const maps = [0, 1].map((chunk) => buildProgressConfigMap(JOB, chunk, notes));
  assert.deepEqual(names(maps), ['convert-machine-type-x-progress-0', 'convert-machine-type-x-progress-1']);
  const plan = buildPlanConfigMaps(JOB, entries(401));
  assert.deepEqual(readProgress(JOB, [...maps, ...plan]), notes);
  assert.equal(readPlan(JOB, [...maps, ...plan])?.length, 401);
});

for (const [kind, text] of Object.entries({ letters: 'x', 'wide characters': '€', 'control characters': '\u0007x' })) {
  test(`long reasons of ${kind} do not make a part too large`, () => {
    const reason = text.repeat(10_000);
    const at = '2026-01-01T12:00:00.000Z';
    const note: EntryNote = { state: 'restartRequired', reason, at, vmiUid: 'f'.repeat(36) };
    const map = buildProgressConfigMap(JOB, 7, { get: () => note });
    assert.ok(bytesOf(map) <= LIMIT_BYTES, `${bytesOf(map)} bytes`);
    const read = readProgress(JOB, [map]);
    assert.equal(read.size, 400);
    assert.match(read.get(2800)?.reason ?? '', /…$/);
  });
}

const damaged: Record<string, string> = {
  'invalid JSON': '[',
  'not a list': '{}',
  'an unknown action': JSON.stringify([{ ...entries(1)[0], act: 'delete' }]),
  'an entry without a uid': JSON.stringify([{ ...entries(1)[0], uid: undefined }]),
};

for (const [name, plan] of Object.entries(damaged)) {
  test(`reading a damaged plan fails: ${name}`, () => {
    const [map] = buildPlanConfigMaps(JOB, entries(1)) as [ConfigMap];
    assert.throws(() => readPlan(JOB, [{ ...map, data: { ...map.data, plan } }]), {
      message:
        'Cannot read the plan of job convert-machine-type-x: data.plan of ConfigMap convert-machine-type-x-plan-0 is not what the job wrote',
    });
  });
}

test('reading damaged notes fails', () => {
  const map = buildProgressConfigMap(JOB, 0, new Map());
  for (const notes of ['[]', '{"__proto__":{"state":"done"}}', '{"0":{"state":"odd"}}', '{"x":{"state":"done"}}']) {
    assert.throws(() => readProgress(JOB, [{ ...map, data: { notes } }]), /data\.notes/, notes);
  }
});
