import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ConfigMap } from '#kube/core-kinds.ts';
import { ENTRIES_PER_CHUNK, buildProgressConfigMap, type PlanEntry } from '#api/machine-types/plan.ts';
import type { VirtualMachine } from '#api/virtual-machine/kind.ts';
import type { VirtualMachineInstance } from '#api/virtual-machine-instance/kind.ts';
import { alreadyExists } from '#kube/api-error.ts';
import type { Stored } from '#kube/meta.ts';
import { buildPlan, loadOrCreatePlan, type PlanParts } from '#transition/plan-store.ts';

const job = { namespace: 'sys', name: 'job', uid: 'job-uid' };
const OLD = 'pc-q35-6.2';
const { signal } = new AbortController();

/** Returns a store that accepts a number of writes and then fails. */
function aStore(stored = new Map<string, ConfigMap>(), writes = Infinity) {
  let left = writes;
  const take = (object: unknown): Promise<never> => {
    if (left-- <= 0) throw new Error('killed');
    const part = object as ConfigMap;
    stored.set(part.metadata.name ?? '', part);
    return Promise.resolve(part as never);
  };
  const client: PlanParts['client'] = {
    list: () => Promise.resolve({ metadata: { resourceVersion: '1' }, items: [...stored.values()] } as never),
    async create(_type, object) {
      const { name = '' } = object.metadata;
      if (stored.has(name)) throw alreadyExists({ group: '', plural: 'configmaps' }, name);
      return await take(object);
    },
    update: async (_type, object) => await take(object),
  };
  return { stored, parts: { client, job, signal } };
}

const entriesNamed = (prefix: string, count: number): PlanEntry[] =>
  Array.from({ length: count }, (_, at) => ({
    namespace: 'ns',
    name: `${prefix}-${at}`,
    uid: `${prefix}-uid-${at}`,
    act: 'clear',
    from: OLD,
    to: 'q35',
  }));
const COUNT = ENTRIES_PER_CHUNK * 2 + 1;

test('a plan is created once; later processes read it with its notes', async () => {
  const { stored, parts } = aStore();
  const entries = entriesNamed('a', COUNT);
  await loadOrCreatePlan(parts, () => Promise.resolve(entries));
  const noted = buildProgressConfigMap(job, 1, new Map([[ENTRIES_PER_CHUNK, { state: 'done' as const }]]));
  stored.set(noted.metadata.name ?? '', noted);
  const again = await loadOrCreatePlan(parts, () => Promise.reject(new Error('made twice')));
  assert.deepEqual(again.entries, entries);
  assert.deepEqual([...again.notes], [[ENTRIES_PER_CHUNK, { state: 'done' }]]);
  assert.equal(again.names.has('job-progress-1'), true);
});

test('an incomplete plan is replaced, wherever it was interrupted', async () => {
  for (const writes of [0, 1, 2]) {
    const { stored } = aStore();
    await assert.rejects(
      loadOrCreatePlan(aStore(stored, writes).parts, () => Promise.resolve(entriesNamed('first', COUNT))),
      /killed/,
    );
    for (const more of [0, 1]) {
      const cut = aStore(stored, more).parts;
      await assert.rejects(
        loadOrCreatePlan(cut, () => Promise.resolve(entriesNamed('second', COUNT))),
        /killed/,
      );
    }
    const entries = entriesNamed('third', ENTRIES_PER_CHUNK + 1);
    const { entries: made } = await loadOrCreatePlan(aStore(stored).parts, () => Promise.resolve(entries));
    assert.equal(made, entries);
    const { entries: read } = await loadOrCreatePlan(aStore(stored).parts, () =>
      Promise.reject(new Error('made twice')),
    );
    assert.deepEqual(read, entries);
  }
});

test('of two processes of the same Job, the first complete plan counts', async () => {
  const { stored, parts } = aStore();
  const entries = entriesNamed('first', COUNT);
  const { entries: second } = await loadOrCreatePlan(parts, async () => {
    await loadOrCreatePlan(aStore(stored).parts, () => Promise.resolve(entries));
    return entriesNamed('second', 3);
  });
  assert.deepEqual(second, entries);
});

function aVm(name: string, { type = OLD, deletionTimestamp }: { type?: string; deletionTimestamp?: string } = {}) {
  return {
    metadata: { namespace: 'ns', name, uid: `${name}-uid`, ...(deletionTimestamp && { deletionTimestamp }) },
    spec: { template: { spec: { domain: { machine: { type } } } } },
  } as Stored<VirtualMachine>;
}

test('the plan has the selected VMs, sorted by name, with their running instances', () => {
  const vms = [aVm('c'), aVm('a'), aVm('b', { type: 'pc-q35-7.2' }), aVm('d', { deletionTimestamp: 'now' })];
  const ownerReferences = [
    { apiVersion: 'kubevirt.io/v1', kind: 'VirtualMachine', name: 'c', uid: 'c-uid', controller: true },
  ];
  const vmi = {
    metadata: { namespace: 'ns', name: 'c', uid: 'run', ownerReferences },
    spec: { domain: { machine: { type: OLD } } },
    status: { phase: 'Running', machine: { type: OLD } },
  } as Stored<VirtualMachineInstance>;
  const options = { glob: '*-6.*', restartNow: false, maxRestarts: 10, maxFailures: Infinity };
  const plan = buildPlan(vms, (key) => (key === 'ns/c' ? vmi : undefined), options, { defaultType: 'q35' });
  const what = { act: 'clear', from: OLD, to: 'q35' };
  assert.deepEqual(plan, [
    { namespace: 'ns', name: 'a', uid: 'a-uid', ...what },
    { namespace: 'ns', name: 'c', uid: 'c-uid', vmiUid: 'run', ...what },
  ]);
});
