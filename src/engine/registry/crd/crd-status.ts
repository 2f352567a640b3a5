/**
 * Computes the whole status of a definition: the names that it may use, and whether it is served. Within an API group,
 * a name belongs to the definition that had it accepted first. Established never reverts, because objects may exist by
 * then.
 */
import { asCrd, type Crd, type CrdNames, type CrdStatus, storageVersionOf } from '#engine/registry/crd/definition.ts';
import type { Resource } from '#engine/registry/resource.ts';
import { type Condition, type ConditionStatus, findCondition } from '#kube/conditions.ts';
import { deepEqual } from '#kube/deep.ts';
import type { KubeObject } from '#kube/meta.ts';

type BuiltInNames = Pick<Resource, 'group' | 'plural' | 'singular' | 'shortNames' | 'kind' | 'listKind'>;

/** `others` may contain the definition itself and those of other groups; they are ignored. */
export function crdStatus(
  object: KubeObject,
  others: readonly KubeObject[],
  now: string,
  builtIns: readonly BuiltInNames[] = [],
): CrdStatus {
  const crd = asCrd(object);
  const taken = namesInUse(crd, others.map(asCrd), builtIns);
  const { acceptedNames, conflict } = acceptNames(crd, taken);
  const before = crd.status?.conditions ?? [];

  const conditions = [
    namesAccepted(conflict, before, now),
    established(conflict === undefined, before, now),
    ...before.filter(({ type }) => type !== 'NamesAccepted' && type !== 'Established'),
  ];
  if (crd.metadata.deletionTimestamp && !findCondition(before, 'Terminating')) conditions.push(terminating(now));
  return { conditions, acceptedNames, storedVersions: storedVersions(crd) };
}

export function isEstablished(object: KubeObject): boolean {
  return findCondition(asCrd(object).status?.conditions, 'Established')?.status === 'True';
}

interface NamesInUse {
  readonly resources: ReadonlySet<string>;
  readonly kinds: ReadonlySet<string>;
}

function namesInUse(crd: Crd, others: readonly Crd[], builtIns: readonly BuiltInNames[]): NamesInUse {
  const neighbours: Partial<Omit<CrdNames, 'shortNames'> & { shortNames: readonly string[] }>[] = [
    ...others
      .filter(({ metadata, spec }) => metadata.name !== crd.metadata.name && spec.group === crd.spec.group)
      .map(({ status }) => status?.acceptedNames ?? {}),
    ...builtIns.filter(({ group }) => group === crd.spec.group),
  ];
  const named = (names: (string | undefined)[]) => new Set(names.filter((name): name is string => Boolean(name)));
  return {
    resources: named(
      neighbours.flatMap(({ plural, singular, shortNames }) => [plural, singular, ...(shortNames ?? [])]),
    ),
    kinds: named(neighbours.flatMap(({ kind, listKind }) => [kind, listKind])),
  };
}

interface Conflict {
  readonly reason: string;
  readonly message: string;
}

/** Accepts each name separately: a name in conflict keeps its previously accepted value. Reports the last conflict. */
function acceptNames({ spec, status }: Crd, { resources, kinds }: NamesInUse) {
  const wanted = spec.names;
  const had = status?.acceptedNames ?? { plural: '', kind: '' };
  const accepted: CrdNames = { ...had };
  let conflict: Conflict | undefined;

  const settle = (field: 'plural' | 'singular' | 'kind' | 'listKind', used: ReadonlySet<string>) => {
    const name = wanted[field] ?? '';
    if (name !== (had[field] ?? '') && used.has(name)) {
      conflict = { reason: `${field.charAt(0).toUpperCase()}${field.slice(1)}Conflict`, message: inUse(name) };
    } else accepted[field] = name;
  };

  settle('plural', resources);
  settle('singular', resources);
  const clashes = (wanted.shortNames ?? []).filter((name) => !had.shortNames?.includes(name) && resources.has(name));
  if (clashes.length > 0) conflict = { reason: 'ShortNamesConflict', message: aggregate(clashes.map(inUse)) };
  else accepted.shortNames = wanted.shortNames;
  settle('kind', kinds);
  settle('listKind', kinds);
  accepted.categories = wanted.categories;
  return { acceptedNames: orderNames(accepted), conflict };
}

const inUse = (name: string) => `${JSON.stringify(name)} is already in use`;

const aggregate = (messages: readonly string[]) =>
  messages.length === 1 ? (messages[0] ?? '') : `[${messages.join(', ')}]`;

/** Orders the names as Kubernetes does and omits empty ones. */
function orderNames({ plural, singular, shortNames, kind, listKind, categories }: CrdNames): CrdNames {
  return {
    plural,
    ...(singular ? { singular } : {}),
    ...(shortNames?.length ? { shortNames } : {}),
    kind,
    ...(listKind ? { listKind } : {}),
    ...(categories?.length ? { categories } : {}),
  };
}

function namesAccepted(conflict: Conflict | undefined, before: readonly Condition[], now: string): Condition {
  if (conflict === undefined) return condition('NamesAccepted', 'True', NO_CONFLICTS, before, now);
  return condition('NamesAccepted', 'False', conflict, before, now);
}

function established(accepted: boolean, before: readonly Condition[], now: string): Condition {
  const old = findCondition(before, 'Established');
  if (old?.status === 'True') return old;
  return condition('Established', accepted ? 'True' : 'False', accepted ? ACCEPTED : NOT_ACCEPTED, before, now);
}

const NO_CONFLICTS = { reason: 'NoConflicts', message: 'no conflicts found' };
const ACCEPTED = { reason: 'InitialNamesAccepted', message: 'the initial names have been accepted' };
const NOT_ACCEPTED = { reason: 'NotAccepted', message: 'not all names are accepted' };

function terminating(now: string): Condition {
  const message = 'CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon';
  return condition('Terminating', 'True', { reason: 'InstanceDeletionPending', message }, [], now);
}

function condition(
  type: string,
  status: ConditionStatus,
  { reason, message }: Conflict,
  before: readonly Condition[],
  now: string,
): Condition {
  const old = findCondition(before, type);
  const lastTransitionTime = old?.status === status ? (old.lastTransitionTime ?? now) : now;
  const next = { type, status, lastTransitionTime, reason, message };
  return old !== undefined && deepEqual(old, next) ? old : next;
}

function storedVersions(crd: Crd): string[] {
  const stored = crd.status?.storedVersions ?? [];
  const storage = storageVersionOf(crd);
  return storage === undefined || stored.includes(storage) ? stored : [...stored, storage];
}
