import assert from 'node:assert/strict';
import { test } from 'node:test';
import { decideCrd } from '#engine/controllers/custom-resource-definition.ts';
import type { Leftovers } from '#engine/controllers/leftovers.ts';
import { aCrd, aVersion } from '#engine/registry/crd/a-crd.fixture.ts';
import { CRD_CLEANUP_FINALIZER, type Crd, type CrdSpec } from '#engine/registry/crd/definition.ts';
import { isTrue, type Condition } from '#kube/conditions.ts';
import type { ObjectMeta, Stored } from '#kube/meta.ts';

const NOW = '2026-01-01T00:01:00Z';
const NOTHING: Leftovers = { toDelete: [], any: false };
const HELD: Leftovers = { toDelete: [], any: true };

const stored = (name: string, metadata: ObjectMeta = {}) => ({
  name,
  uid: `uid-${name}`,
  resourceVersion: '1',
  creationTimestamp: '',
  ...metadata,
});

function definition(metadata: ObjectMeta = {}, spec: Partial<CrdSpec> = {}): Stored<Crd> {
  return { ...aCrd(spec), metadata: stored('gadgets.golden.local', metadata) };
}

function gadgets(...names: string[]): Leftovers {
  const toDelete = names.map((name) => ({
    apiVersion: 'golden.local/v1',
    kind: 'Gadget',
    metadata: stored(name, { namespace: 'ns' }),
  }));
  return { toDelete, any: true };
}

/** Whose names were accepted before. */
function rival(): Stored<Crd> {
  const names = { plural: 'gizmos', kind: 'Gizmo', shortNames: ['gd'] };
  const crd: Stored<Crd> = { ...aCrd({ names }), metadata: stored('gizmos.golden.local') };
  return { ...crd, status: { acceptedNames: names } };
}

const DELETING = { deletionTimestamp: '2026-01-01T00:00:00Z' };
const HOLDING = { ...DELETING, finalizers: ['example.org/mine', CRD_CLEANUP_FINALIZER] };

interface Case {
  readonly crd: Stored<Crd>;
  readonly others?: Stored<Crd>[];
  readonly objects?: Leftovers;
  /** Conditions that are True. */
  readonly standing: string[];
  readonly want?: string[];
  readonly again?: boolean;
}

const ESTABLISHED = ['NamesAccepted', 'Established'];

const cases: Record<string, Case> = {
  'accepts its names and establishes it': { crd: definition(), standing: ESTABLISHED },
  'does not establish what wants names of another': { crd: definition(), others: [rival()], standing: [] },
  'deletes nothing of a living one': { crd: definition(), objects: gadgets('a'), standing: ESTABLISHED },
  'deletes the objects first': {
    crd: definition(HOLDING),
    objects: gadgets('a', 'b'),
    standing: [...ESTABLISHED, 'Terminating'],
    want: ['delete gadgets/v1 ns/a uid-a', 'delete gadgets/v1 ns/b uid-b'],
    again: true,
  },
  'deletes through a version that is served': {
    crd: definition(HOLDING, { versions: [aVersion({ served: false }), aVersion({ name: 'v2', storage: false })] }),
    objects: gadgets('a'),
    standing: [...ESTABLISHED, 'Terminating'],
    want: ['delete gadgets/v2 ns/a uid-a'],
    again: true,
  },
  'waits for objects that finalizers hold': {
    crd: definition(HOLDING),
    objects: HELD,
    standing: [...ESTABLISHED, 'Terminating'],
    again: true,
  },
  'lets go once none is left, and only of its own finalizer': {
    crd: definition(HOLDING),
    standing: [...ESTABLISHED, 'Terminating'],
    want: ['patch customresourcedefinitions/v1 gadgets.golden.local uid-gadgets.golden.local /metadata/finalizers/1'],
  },
  'has nothing to do where its finalizer is gone': {
    crd: definition(DELETING),
    standing: [...ESTABLISHED, 'Terminating'],
  },
};

for (const [name, { crd, others = [], objects = NOTHING, standing, want = [], again = false }] of Object.entries(
  cases,
)) {
  test(name, () => {
    const plan = decideCrd({ crd, all: [crd, ...others], builtIns: [], objects, now: NOW });
    const conditions = plan.status?.['conditions'] as Condition[];
    assert.deepEqual(
      conditions.filter(({ type }) => isTrue(conditions, type)).map(({ type }) => type),
      standing,
    );
    assert.deepEqual(plan.changes.map(told), want);
    assert.equal(plan.requeueAfterMs !== undefined, again);
  });
}

function told(change: ReturnType<typeof decideCrd>['changes'][number]): string {
  assert.notEqual(change.do, 'create');
  if (change.do === 'create') return '';
  const { namespace, name } = change.name;
  const place = namespace === undefined ? name : `${namespace}/${name}`;
  const path = change.do === 'patch' ? ` ${(change.patch.body as { path: string }[])[0]?.path}` : '';
  return `${change.do} ${change.type.plural}/${change.type.version} ${place} ${change.uid}${path}`;
}
