import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { formatProtectedNames, PROTECTION_LABEL } from '#api/protection/delete-protection.ts';
import type { VirtualMachine } from '#api/virtual-machine/kind.ts';
import type { ChangeListener, Informer } from '#client/informer.ts';
import { ObjectCache } from '#client/object-cache.ts';
import { objectKey } from '#client/object-key.ts';
import { ANYWHERE, MAX_FIRST, ProtectedVms, type Relation } from '#controllers/protection/protected-vms.ts';
import type { ObjectMeta, Stored } from '#kube/meta.ts';

const RELATIONS: readonly Relation[] = ['anywhere', 'namespace', 'claim', 'owner', 'state'];
const PROTECTED = { labels: { [PROTECTION_LABEL]: 'true' } };

interface Spec {
  readonly claims?: readonly string[];
  readonly metadata?: ObjectMeta;
}

function aVm(name: string, { claims = ['root'], metadata = PROTECTED }: Spec = {}): Stored<VirtualMachine> {
  const identity = { namespace: 'ns', name, uid: `${name}-uid`, resourceVersion: '1' };
  const volumes = claims.map((claimName) => ({ name: claimName, persistentVolumeClaim: { claimName } }));
  return {
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachine',
    metadata: { ...identity, creationTimestamp: '2026-01-01T00:00:00Z', ...metadata },
    spec: { template: { spec: { domain: {}, volumes } } },
  };
}

/** A fake informer of VMs, with the keys that the index triggers. */
class FakeVms {
  readonly #cache = new ObjectCache<VirtualMachine>();
  readonly #listeners = new Set<ChangeListener<VirtualMachine>>();
  readonly #stopping = new AbortController();
  readonly vms: ProtectedVms;
  triggered: string[] = [];

  constructor() {
    const onChange = (listener: ChangeListener<VirtualMachine>) => {
      this.#listeners.add(listener);
      return () => void this.#listeners.delete(listener);
    };
    this.vms = new ProtectedVms({ onChange } as unknown as Informer<VirtualMachine>, this.#stopping);
    for (const relation of RELATIONS) {
      this.vms.source(relation, (value) => [`${relation} ${value}`]).subscribe((key) => this.triggered.push(key));
    }
  }

  get listeners(): number {
    return this.#listeners.size;
  }

  stop(): void {
    this.#stopping.abort();
  }

  put(vm: Stored<VirtualMachine>): void {
    this.triggered = [];
    const change = this.#cache.put(objectKey(vm), vm);
    for (const listener of this.#listeners) listener(objectKey(vm), change);
  }

  remove(name: string): void {
    this.triggered = [];
    const change = this.#cache.remove(`ns/${name}`);
    assert(change !== undefined);
    for (const listener of this.#listeners) listener(`ns/${name}`, change);
  }
}

describe('a change of a VM triggers', () => {
  const all = ['anywhere ', 'namespace ns', 'claim ns/root', 'owner ns/db-uid', 'state ns/db'];
  const bare = { metadata: {} };
  const cases: Record<string, { before?: Spec; after?: Spec; want: readonly string[] }> = {
    'nothing if it is created unprotected': { after: bare, want: [] },
    'all relations if it is created protected': { after: {}, want: all },
    'all relations if the label is added': { before: bare, after: {}, want: all },
    'all relations if the label is True': {
      before: bare,
      after: { metadata: { labels: { [PROTECTION_LABEL]: 'True' } } },
      want: all,
    },
    'nothing if the label has another value': {
      before: bare,
      after: { metadata: { labels: { [PROTECTION_LABEL]: 'yes' } } },
      want: [],
    },
    'all relations if the label is removed': { before: {}, after: bare, want: all },
    'all relations if it is being deleted': {
      before: {},
      after: { metadata: { ...PROTECTED, deletionTimestamp: '2026-01-01T12:00:00Z' } },
      want: all,
    },
    'all relations if it is deleted': { before: {}, want: all },
    'nothing if an unprotected VM is deleted': { before: bare, want: [] },
    'nothing if something else has changed': {
      before: {},
      after: { metadata: { ...PROTECTED, resourceVersion: '2', annotations: { a: 'b' } } },
      want: [],
    },
    'the claims that are added and removed': {
      before: { claims: ['root', 'logs'] },
      after: { claims: ['data', 'root'] },
      want: ['claim ns/logs', 'claim ns/data'],
    },
    'nothing if an unprotected VM gets another claim': {
      before: bare,
      after: { ...bare, claims: ['data'] },
      want: [],
    },
    'both owners if another VM has replaced it': {
      before: {},
      after: { metadata: { ...PROTECTED, uid: 'new-uid' } },
      want: ['owner ns/db-uid', 'owner ns/new-uid'],
    },
  };
  for (const [sentence, { before, after, want }] of Object.entries(cases)) {
    test(sentence, () => {
      const fake = new FakeVms();
      if (before !== undefined) fake.put(aVm('db', before));
      if (after === undefined) fake.remove('db');
      else fake.put(aVm('db', after));
      assert.deepEqual(fake.triggered, want);
    });
  }
});

test('protected VMs are found by all their relations, sorted, and forgotten', () => {
  const fake = new FakeVms();
  const { vms } = fake;
  fake.put(aVm('web', { claims: ['root', 'shared'] }));
  fake.put(aVm('db', { claims: ['shared'] }));
  fake.put(aVm('free', { metadata: {} }));
  assert.deepEqual(vms.first('anywhere', ANYWHERE), ['ns/db', 'ns/web']);
  assert.deepEqual(vms.first('namespace', 'ns'), ['ns/db', 'ns/web']);
  assert.deepEqual(vms.first('claim', 'ns/shared'), ['ns/db', 'ns/web']);
  assert.deepEqual(vms.first('claim', 'ns/root'), ['ns/web']);
  assert.deepEqual(vms.first('owner', 'ns/db-uid'), ['ns/db']);
  assert.deepEqual(vms.first('state', 'ns/db'), ['ns/db']);
  assert.deepEqual(vms.first('state', 'ns/free'), []);
  fake.put(aVm('web', { claims: ['root'] }));
  assert.deepEqual(vms.first('claim', 'ns/shared'), ['ns/db']);
  fake.remove('web');
  fake.put(aVm('db', { metadata: {} }));
  assert.deepEqual(vms.first('anywhere', ANYWHERE), []);
  assert.deepEqual(vms.first('claim', 'ns/root'), []);
});

test('the first of many VMs give the same mark as all of them', () => {
  const fake = new FakeVms();
  const names = Array.from({ length: 50 }, (_, index) => `vm-${String(index).padStart(2, '0')}`);
  for (const name of names.toReversed()) fake.put(aVm(name));
  const first = fake.vms.first('claim', 'ns/root');
  assert.equal(first.length, MAX_FIRST);
  assert.equal(formatProtectedNames(first), formatProtectedNames(names.map((name) => `ns/${name}`)));
});

test('stops listening when the signal aborts', () => {
  const fake = new FakeVms();
  const before = fake.listeners;
  fake.stop();
  assert.equal(fake.listeners, before - 1);
});
