import assert from 'node:assert/strict';
import { test } from 'node:test';
import { decideNamespace, type Content } from '#engine/controllers/namespace.ts';
import type { Namespace } from '#engine/controllers/kinds.ts';
import type { Stored } from '#kube/meta.ts';

const stored = (name: string, metadata: object = {}) => ({
  name,
  uid: `uid-${name}`,
  resourceVersion: '1',
  creationTimestamp: '',
  ...metadata,
});
const DELETING = { deletionTimestamp: '2026-01-01T00:00:00Z' };

function namespace(metadata: object, finalizers: string[] = ['kubernetes']): Stored<Namespace> {
  return { apiVersion: 'v1', kind: 'Namespace', metadata: stored('ns', metadata), spec: { finalizers } };
}

function pod(name: string, metadata: object = {}): Content {
  const type = { group: '', version: 'v1', kind: 'Pod', plural: 'pods', namespaced: true };
  return { type, object: { apiVersion: 'v1', kind: 'Pod', metadata: stored(name, { namespace: 'ns', ...metadata }) } };
}

interface Case {
  readonly namespace: Stored<Namespace>;
  readonly content?: Content[];
  readonly empty?: boolean;
  readonly want: string[];
  readonly again?: boolean;
}

const cases: Record<string, Case> = {
  'leaves a living namespace alone': { namespace: namespace({}), content: [pod('a')], want: [] },
  'deletes what is in it': {
    namespace: namespace(DELETING),
    content: [pod('a'), pod('b')],
    want: ['delete a', 'delete b'],
    again: true,
  },
  'waits for what is held by finalizers': {
    namespace: namespace(DELETING),
    empty: false,
    want: [],
    again: true,
  },
  'lets go of an empty one': { namespace: namespace(DELETING), want: ['patch ns'] },
  'leaves the finalizers of others': { namespace: namespace(DELETING, ['example.com/mine']), want: [] },
};

for (const [
  name,
  { namespace: subject, content = [], empty = content.length === 0, want, again = false },
] of Object.entries(cases)) {
  test(name, () => {
    const plan = decideNamespace({ namespace: subject, content, empty });
    const told = plan.changes.map((change) => `${change.do} ${change.do === 'create' ? '' : change.name.name}`);
    assert.deepEqual(told, want);
    assert.equal(plan.requeueAfterMs !== undefined, again);
  });
}
