import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { namesOfProtected, PROTECTION_LABEL } from '#api/delete-protection.ts';
import type { VirtualMachine } from '#api/virtual-machine/kind.ts';
import type { ChangeListener, Informer } from '#client/informer.ts';
import { ObjectCache } from '#client/object-cache.ts';
import { objectKey } from '#client/object-key.ts';
import { ANYWHERE, ENOUGH, ProtectedVms, type Tie } from '#controllers/protection/protected-vms.ts';
import type { ObjectMeta, Stored } from '#kube/meta.ts';

const TIES: readonly Tie[] = ['anywhere', 'namespace', 'claim', 'owner', 'state'];
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

/** VMs as an informer shows them, and what the index wakes. */
class Feed {
  readonly #cache = new ObjectCache<VirtualMachine>();
  readonly #listeners = new Set<ChangeListener<VirtualMachine>>();
  readonly #stopping = new AbortController();
  readonly vms: ProtectedVms;
  woken: string[] = [];

  constructor() {
    const onChange = (listener: ChangeListener<VirtualMachine>) => {
      this.#listeners.add(listener);
      return () => void this.#listeners.delete(listener);
    };
    this.vms = new ProtectedVms({ onChange } as unknown as Informer<VirtualMachine>, this.#stopping);
    for (const tie of TIES) {
      this.vms.source(tie, (value) => [`${tie} ${value}`]).subscribe((key) => this.woken.push(key));
    }
  }

  get listeners(): number {
    return this.#listeners.size;
  }

  stop(): void {
    this.#stopping.abort();
  }

  put(vm: Stored<VirtualMachine>): void {
    this.woken = [];
    const change = this.#cache.put(objectKey(vm), vm);
    for (const listener of this.#listeners) listener(objectKey(vm), change);
  }

  remove(name: string): void {
    this.woken = [];
    const change = this.#cache.remove(`ns/${name}`);
    assert(change !== undefined);
    for (const listener of this.#listeners) listener(`ns/${name}`, change);
  }
}

describe('what a change of a VM wakes', () => {
  const all = ['anywhere ', 'namespace ns', 'claim ns/root', 'owner ns/db-uid', 'state ns/db'];
  const bare = { metadata: {} };
  const cases: Record<string, { before?: Spec; after?: Spec; want: readonly string[] }> = {
    'nothing, where it comes unprotected': { after: bare, want: [] },
    'all, where it comes protected': { after: {}, want: all },
    'all, where the label comes': { before: bare, after: {}, want: all },
    'all, where the label says True': {
      before: bare,
      after: { metadata: { labels: { [PROTECTION_LABEL]: 'True' } } },
      want: all,
    },
    'nothing, where the label does not protect': {
      before: bare,
      after: { metadata: { labels: { [PROTECTION_LABEL]: 'yes' } } },
      want: [],
    },
    'all, where the label goes': { before: {}, after: bare, want: all },
    'all, where it is being deleted': {
      before: {},
      after: { metadata: { ...PROTECTED, deletionTimestamp: '2026-01-01T12:00:00Z' } },
      want: all,
    },
    'all, where it is gone': { before: {}, want: all },
    'nothing, where an unprotected one is gone': { before: bare, want: [] },
    'nothing, where something else has changed': {
      before: {},
      after: { metadata: { ...PROTECTED, resourceVersion: '2', annotations: { a: 'b' } } },
      want: [],
    },
    'the claims that come and go': {
      before: { claims: ['root', 'logs'] },
      after: { claims: ['data', 'root'] },
      want: ['claim ns/logs', 'claim ns/data'],
    },
    'nothing, where an unprotected one gets another claim': {
      before: bare,
      after: { ...bare, claims: ['data'] },
      want: [],
    },
    'what both own, where another took its name in one step': {
      before: {},
      after: { metadata: { ...PROTECTED, uid: 'new-uid' } },
      want: ['owner ns/db-uid', 'owner ns/new-uid'],
    },
  };
  for (const [sentence, { before, after, want }] of Object.entries(cases)) {
    test(sentence, () => {
      const feed = new Feed();
      if (before !== undefined) feed.put(aVm('db', before));
      if (after === undefined) feed.remove('db');
      else feed.put(aVm('db', after));
      assert.deepEqual(feed.woken, want);
    });
  }
});

test('the protected ones are found by all their ties, in order, and forgotten', () => {
  const feed = new Feed();
  const { vms } = feed;
  feed.put(aVm('web', { claims: ['root', 'shared'] }));
  feed.put(aVm('db', { claims: ['shared'] }));
  feed.put(aVm('free', { metadata: {} }));
  assert.deepEqual(vms.first('anywhere', ANYWHERE), ['ns/db', 'ns/web']);
  assert.deepEqual(vms.first('namespace', 'ns'), ['ns/db', 'ns/web']);
  assert.deepEqual(vms.first('claim', 'ns/shared'), ['ns/db', 'ns/web']);
  assert.deepEqual(vms.first('claim', 'ns/root'), ['ns/web']);
  assert.deepEqual(vms.first('owner', 'ns/db-uid'), ['ns/db']);
  assert.deepEqual(vms.first('state', 'ns/db'), ['ns/db']);
  assert.deepEqual(vms.first('state', 'ns/free'), []);
  feed.put(aVm('web', { claims: ['root'] }));
  assert.deepEqual(vms.first('claim', 'ns/shared'), ['ns/db']);
  feed.remove('web');
  feed.put(aVm('db', { metadata: {} }));
  assert.deepEqual(vms.first('anywhere', ANYWHERE), []);
  assert.deepEqual(vms.first('claim', 'ns/root'), []);
});

test('of many only the first are looked at, and the mark says the same as of all', () => {
  const feed = new Feed();
  const names = Array.from({ length: 50 }, (_, index) => `vm-${String(index).padStart(2, '0')}`);
  for (const name of names.toReversed()) feed.put(aVm(name));
  const first = feed.vms.first('claim', 'ns/root');
  assert.equal(first.length, ENOUGH);
  assert.equal(namesOfProtected(first), namesOfProtected(names.map((name) => `ns/${name}`)));
});

test('it leaves when it is to stop', () => {
  const feed = new Feed();
  const before = feed.listeners;
  feed.stop();
  assert.equal(feed.listeners, before - 1);
});
