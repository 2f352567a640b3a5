import assert from 'node:assert/strict';
import { test } from 'node:test';
import { concludeCrd, decideCrd, type CrdWorld } from '#engine/controllers/custom-resource-definition.ts';
import { aCrd, aVersion } from '#engine/registry/crd/testing/custom-resource-definition.ts';
import { CRD_CLEANUP_FINALIZER, type Crd, type CrdSpec } from '#engine/registry/crd/definition.ts';
import { isTrue, type Condition } from '#kube/conditions.ts';
import type { ObjectMeta, Stored } from '#kube/meta.ts';

const NOW = '2026-01-01T00:01:00Z';
type Objects = CrdWorld['objects'];
const NOTHING: Objects = { toDelete: [], count: 0, complete: true };
const HELD: Objects = { toDelete: [], count: 1, complete: true };

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

function gadgets(...names: string[]): Objects {
  const toDelete = names.map((name) => ({
    apiVersion: 'golden.local/v1',
    kind: 'Gadget',
    metadata: stored(name, { namespace: 'ns' }),
  }));
  return { toDelete, count: names.length, complete: true };
}

/** A definition whose names were accepted before. */
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
  readonly objects?: Objects;
  /** Types of conditions that are True. */
  readonly trueConditions: string[];
  readonly want?: string[];
  readonly again?: boolean;
}

const ESTABLISHED = ['NamesAccepted', 'Established'];

const cases: Record<string, Case> = {
  'accepts its names and establishes it': { crd: definition(), trueConditions: ESTABLISHED },
  'does not establish a definition with names of another one': {
    crd: definition(),
    others: [rival()],
    trueConditions: [],
  },
  'deletes nothing if the definition is not under deletion': {
    crd: definition(),
    objects: gadgets('a'),
    trueConditions: ESTABLISHED,
  },
  'deletes the objects before the definition': {
    crd: definition(HOLDING),
    objects: gadgets('a', 'b'),
    trueConditions: [...ESTABLISHED, 'Terminating'],
    want: ['delete gadgets/v1 ns/a uid-a', 'delete gadgets/v1 ns/b uid-b'],
    again: true,
  },
  'deletes through a version that is served': {
    crd: definition(HOLDING, { versions: [aVersion({ served: false }), aVersion({ name: 'v2', storage: false })] }),
    objects: gadgets('a'),
    trueConditions: [...ESTABLISHED, 'Terminating'],
    want: ['delete gadgets/v2 ns/a uid-a'],
    again: true,
  },
  'deletes through the storage version, which needs no conversion webhook': {
    crd: definition(HOLDING, { versions: [aVersion({ name: 'v2', storage: false }), aVersion({})] }),
    objects: gadgets('a'),
    trueConditions: [...ESTABLISHED, 'Terminating'],
    want: ['delete gadgets/v1 ns/a uid-a'],
    again: true,
  },
  'waits for objects that finalizers hold': {
    crd: definition(HOLDING),
    objects: HELD,
    trueConditions: [...ESTABLISHED, 'Terminating'],
    again: true,
  },
  'removes only its own finalizer when no object is left': {
    crd: definition(HOLDING),
    trueConditions: [...ESTABLISHED, 'Terminating'],
    want: ['patch customresourcedefinitions/v1 gadgets.golden.local uid-gadgets.golden.local /metadata/finalizers/1'],
  },
  'does nothing if its finalizer is already removed': {
    crd: definition(DELETING),
    trueConditions: [...ESTABLISHED, 'Terminating'],
  },
};

for (const [name, { crd, others = [], objects = NOTHING, trueConditions, want = [], again = false }] of Object.entries(
  cases,
)) {
  test(name, () => {
    const plan = decideCrd({ crd, all: [crd, ...others], builtIns: [], objects, unchangedRounds: 0, now: NOW });
    const conditions = plan.status?.['conditions'] as Condition[];
    assert.deepEqual(
      conditions.filter(({ type }) => isTrue(conditions, type)).map(({ type }) => type),
      trueConditions,
    );
    assert.deepEqual(plan.changes.map(describeChange), want);
    assert.equal(plan.requeueAfterMs !== undefined, again);
  });
}

function describeChange(change: ReturnType<typeof decideCrd>['changes'][number]): string {
  assert.notEqual(change.do, 'create');
  if (change.do === 'create') return '';
  const { namespace, name } = change.name;
  const place = namespace === undefined ? name : `${namespace}/${name}`;
  const path = change.do === 'patch' ? ` ${(change.patch.body as { path: string }[])[0]?.path}` : '';
  return `${change.do} ${change.type.plural}/${change.type.version} ${place} ${change.uid}${path}`;
}

const FAILED = 'InstanceDeletionFailed: could not issue all deletes: ';
const IN_PROGRESS = 'InstanceDeletionInProgress: CustomResource deletion is in progress';

interface Ending {
  readonly before?: string;
  readonly refused?: string[];
  readonly complete?: boolean;
  /** The condition Terminating before and after the deletions; undefined = the status is not written. */
  readonly want: [before: string, after: string | undefined];
}

const endings: Record<string, Ending> = {
  'reports deletions in progress': { want: [IN_PROGRESS, IN_PROGRESS] },
  'reports one refusal': { refused: ['a stays'], want: [IN_PROGRESS, `${FAILED}a stays`] },
  'reports several refusals': { refused: ['a stays', 'b stays'], want: [IN_PROGRESS, `${FAILED}[a stays, b stays]`] },
  'keeps reporting a refusal': {
    before: `${FAILED}a stays`,
    refused: ['a stays'],
    want: [`${FAILED}a stays`, `${FAILED}a stays`],
  },
  'stops reporting a refusal that is resolved': { before: `${FAILED}a stays`, want: [`${FAILED}a stays`, IN_PROGRESS] },
  'reports no result before all deletions were tried': {
    refused: ['a stays'],
    complete: false,
    want: [IN_PROGRESS, undefined],
  },
};

for (const [name, { before, refused = [], complete = true, want }] of Object.entries(endings)) {
  test(`Terminating: ${name}`, () => {
    const crd = definition(HOLDING);
    const [, reason, message] = /^(\w+): (.*)$/.exec(before ?? '') ?? [];
    if (before !== undefined) {
      crd.status = { conditions: [{ type: 'Terminating', status: 'True', reason, message, lastTransitionTime: NOW }] };
    }
    const objects = { ...gadgets('a', 'b'), complete };
    const world: CrdWorld = { crd, all: [crd], builtIns: [], objects, unchangedRounds: 0, now: NOW };
    const terminatingOf = (status: ReturnType<typeof concludeCrd>) => {
      const found = (status?.['conditions'] as Condition[] | undefined)?.find(({ type }) => type === 'Terminating');
      return found && `${found.reason}: ${found.message}`;
    };
    assert.deepEqual([terminatingOf(decideCrd(world).status), terminatingOf(concludeCrd(world, refused))], want);
  });
}
