import assert from 'node:assert/strict';
import { test } from 'node:test';
import { DependencyGraph, type Duty } from '#engine/controllers/garbage-collector/graph.ts';
import {
  aReference,
  aThing,
  blocking,
  DELETED,
  FOREGROUND,
  ORPHAN,
  THINGS,
  uidOf,
} from '#engine/controllers/garbage-collector/testing/sample-object.ts';
import type { CollectedObject } from '#engine/controllers/garbage-collector/owner-patches.ts';

function graphOf(...things: readonly CollectedObject[]): DependencyGraph {
  const graph = new DependencyGraph();
  for (const thing of things) graph.set(thing);
  return graph;
}

const CLUSTER_THINGS = { ...THINGS, namespaced: false };

interface DutyCase {
  readonly things: readonly CollectedObject[];
  /** The duties by object; objects without a duty are omitted. */
  readonly want: Readonly<Record<string, Duty>>;
}

const duties: Record<string, DutyCase> = {
  'objects without owners have no duty': { things: [aThing('a'), aThing('b')], want: {} },
  'a dependent of a known owner has no duty': {
    things: [aThing('owner'), aThing('a', { ownerReferences: [aReference('owner')] })],
    want: {},
  },
  'the order in which objects are added does not matter': {
    things: [aThing('a', { ownerReferences: [aReference('owner')] }), aThing('owner')],
    want: {},
  },
  'a dependent of an unknown owner is checked': {
    things: [aThing('a', { ownerReferences: [aReference('unknown')] })],
    want: { a: 'checkOwners' },
  },
  'a dependent with one unknown owner of two is checked': {
    things: [aThing('owner'), aThing('a', { ownerReferences: [aReference('owner'), aReference('unknown')] })],
    want: { a: 'checkOwners' },
  },
  'a dependent of an owner in another namespace is checked': {
    things: [aThing('owner', { namespace: 'other' }), aThing('a', { ownerReferences: [aReference('owner')] })],
    want: { a: 'checkOwners' },
  },
  'a cluster-scoped owner may own objects in any namespace': {
    things: [
      aThing('owner', { namespace: undefined }, CLUSTER_THINGS),
      aThing('a', { ownerReferences: [aReference('owner')] }),
    ],
    want: {},
  },
  'a reference with a wrong name is checked': {
    things: [aThing('owner'), aThing('a', { ownerReferences: [aReference('alias', { uid: uidOf('owner') })] })],
    want: { a: 'checkOwners' },
  },
  'a reference in another version is valid': {
    things: [aThing('owner'), aThing('a', { ownerReferences: [aReference('owner', { apiVersion: 'test.local/v2' })] })],
    want: {},
  },
  'all dependents of a waiting owner are checked, blocking or not': {
    things: [
      aThing('owner', FOREGROUND),
      aThing('a', { ownerReferences: [blocking('owner')] }),
      aThing('b', { ownerReferences: [aReference('owner')] }),
    ],
    want: { a: 'checkOwners', b: 'checkOwners' },
  },
  'a waiting owner that nothing blocks is released': {
    things: [aThing('owner', FOREGROUND), aThing('b', { ...DELETED, ownerReferences: [aReference('owner')] })],
    want: { owner: 'release' },
  },
  'a dependent under deletion blocks as long as it exists': {
    things: [aThing('owner', FOREGROUND), aThing('a', { ...DELETED, ownerReferences: [blocking('owner')] })],
    want: {},
  },
  'the finalizer alone does not start a deletion': {
    things: [aThing('owner', { finalizers: ['foregroundDeletion'] })],
    want: {},
  },
  'an owner under deletion with the orphan finalizer orphans its dependents': {
    things: [aThing('o', ORPHAN)],
    want: { o: 'orphan' },
  },
  'two objects that block each other unblock each other': {
    things: [
      aThing('a', { ...FOREGROUND, ownerReferences: [blocking('b')] }),
      aThing('b', { ...FOREGROUND, ownerReferences: [blocking('a')] }),
    ],
    want: { a: 'unblock', b: 'unblock' },
  },
  'a cycle of three is detected, and its dependents are not part of it': {
    things: [
      aThing('a', { ...FOREGROUND, ownerReferences: [blocking('c')] }),
      aThing('b', { ...FOREGROUND, ownerReferences: [blocking('a')] }),
      aThing('c', { ...FOREGROUND, ownerReferences: [blocking('b')] }),
      aThing('leaf', { ...FOREGROUND, ownerReferences: [blocking('c')] }),
      aThing('last', { ...DELETED, ownerReferences: [blocking('leaf')] }),
    ],
    want: { a: 'unblock', b: 'unblock', c: 'unblock' },
  },
  'an object that owns itself unblocks itself': {
    things: [aThing('a', { ...FOREGROUND, ownerReferences: [blocking('a')] })],
    want: { a: 'unblock' },
  },
  'a cycle with a link that does not block needs no unblocking': {
    things: [
      aThing('a', { ...FOREGROUND, ownerReferences: [aReference('b')] }),
      aThing('b', { ...FOREGROUND, ownerReferences: [blocking('a')] }),
    ],
    want: { b: 'release' },
  },
};

for (const [name, { things, want }] of Object.entries(duties)) {
  test(name, () => {
    const graph = graphOf(...things);
    const got: Record<string, Duty> = {};
    for (const { object } of things) {
      const duty = graph.dutyOf(object.metadata.uid);
      if (duty !== undefined) got[object.metadata.name] = duty;
    }
    assert.deepEqual(got, want);
  });
}

interface ChangeCase {
  readonly before: readonly CollectedObject[];
  readonly change: (graph: DependencyGraph) => readonly string[];
  /** The objects whose duties may have changed. */
  readonly want: readonly string[];
}

const changes: Record<string, ChangeCase> = {
  'an unrelated change affects no object': {
    before: [aThing('owner'), aThing('a', { ownerReferences: [aReference('owner')] })],
    change: (graph) => graph.set(aThing('a', { resourceVersion: '8', ownerReferences: [aReference('owner')] })),
    want: [],
  },
  'a removed owner affects its dependents': {
    before: [aThing('owner'), aThing('a', { ownerReferences: [aReference('owner')] })],
    change: (graph) => graph.remove(uidOf('owner')),
    want: ['a'],
  },
  'a removed dependent affects its owners': {
    before: [aThing('owner'), aThing('a', { ownerReferences: [aReference('owner'), aReference('other')] })],
    change: (graph) => graph.remove(uidOf('a')),
    want: ['owner', 'other'],
  },
  'a changed reference affects both owners': {
    before: [aThing('a', { ownerReferences: [aReference('old')] })],
    change: (graph) => graph.set(aThing('a', { ownerReferences: [aReference('new')] })),
    want: ['a', 'old', 'new'],
  },
  'a reference that stops blocking affects the owner': {
    before: [aThing('a', { ownerReferences: [blocking('owner')] })],
    change: (graph) => graph.set(aThing('a', { ownerReferences: [aReference('owner')] })),
    want: ['a', 'owner'],
  },
  'a foreground deletion affects the dependents': {
    before: [aThing('owner'), aThing('a', { ownerReferences: [aReference('owner')] })],
    change: (graph) => graph.set(aThing('owner', FOREGROUND)),
    want: ['owner', 'a'],
  },
  'an owner that is added later affects its dependents': {
    before: [aThing('a', { ownerReferences: [aReference('owner')] })],
    change: (graph) => graph.set(aThing('owner')),
    want: ['owner', 'a'],
  },
};

for (const [name, { before, change, want }] of Object.entries(changes)) {
  test(name, () => {
    assert.deepEqual(change(graphOf(...before)).toSorted(), want.map(uidOf).toSorted());
  });
}

test('a graph without objects keeps nothing in memory', () => {
  const things = [
    aThing('a', { ownerReferences: [blocking('b')] }),
    aThing('b', { ownerReferences: [blocking('a'), aReference('a')] }),
  ];
  const graph = graphOf(...things);
  graph.remove(uidOf('a'));
  assert.equal(graph.hasDependents(uidOf('b')), false);
  graph.remove(uidOf('b'));
  assert.deepEqual([graph.size, graph.hasDependents(uidOf('a'))], [0, false]);
});
