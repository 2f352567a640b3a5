/**
 * The only writer: executes a plan. Doing a plan twice does it once: what is there already, or gone already, is fine.
 * It returns only when the caches show what was written, so that the next look at the same key cannot miss it.
 */
import { startAttempt } from '#client/abort.ts';
import type { Client } from '#client/client.ts';
import { keyOf, objectKey } from '#client/object-key.ts';
import { conflict, isApiError, isUnfitPatch, MODIFIED } from '#kube/api-error.ts';
import { applyJsonPatch } from '#kube/json-patch.ts';
import { controllerUid, groupResource, isRecord } from '#kube/meta.ts';
import type { ResourceType, Stored } from '#kube/meta.ts';
import type { Clock } from '#lib/clock.ts';
import { unreachable } from '#lib/invariant.ts';
import type { Log } from '#lib/log.ts';
import type { EventSink } from '#runtime/events.ts';
import { checkPlan } from '#runtime/plan.ts';
import type { Change, CreateChange, DeleteChange, Failure, PatchChange, Plan } from '#runtime/plan.ts';
import { deepEqual } from '#kube/deep.ts';

/** An informer, as far as it must show what was written. */
export interface Cache {
  readonly type: ResourceType;
  get(key: string): Stored | undefined;
  list(): readonly Stored[];
  reached(resourceVersion: string, options: { signal: AbortSignal }): Promise<boolean>;
  until(ready: () => boolean, options: { signal: AbortSignal }): Promise<boolean>;
}

/** The object that the plan is about: its status is written, and Events are told of it. */
export interface Subject {
  readonly type: ResourceType;
  readonly object: Stored;
}

export interface ApplyContext {
  readonly client: Client;
  readonly clock: Clock;
  readonly log: Log;
  readonly events: EventSink;
  readonly caches: readonly Cache[];
  readonly fieldManager: string;
  readonly signal: AbortSignal;
  /** Told of each change that was made and had not been made before. */
  readonly onApplied?: (change: Change) => void;
}

/** Past it we look again with what we have: a cache that hangs must not hold up the queue. */
const CACHE_WAIT_MS = 10_000;

const REASONS = {
  create: ['SuccessfulCreate', 'FailedCreate'],
  patch: ['SuccessfulPatch', 'FailedPatch'],
  delete: ['SuccessfulDelete', 'FailedDelete'],
} as const;

/** What a plan that was to go on could not do. */
export class PlanFailure extends AggregateError {
  override readonly name = 'PlanFailure';
  readonly failures: readonly Failure[];

  constructor(failures: readonly Failure[], tried: number) {
    const [first] = failures;
    const why = first === undefined ? '' : `: ${describe(first.change)}: ${textOf(first.error)}`;
    super(
      failures.map(({ error }) => error),
      `Cannot make ${failures.length} of ${tried} changes${why}`,
    );
    this.failures = failures;
  }
}

/** Throws what the API throws; Conflict and the like mean that the decision was made on an old state. */
export async function applyPlan(plan: Plan, subject: Subject | undefined, context: ApplyContext): Promise<void> {
  checkPlan(plan);
  const written: Written[] = [];
  try {
    // First, because a conflict here shows that the plan is built on an old state, before anything is done.
    if (plan.status !== undefined && subject !== undefined) {
      written.push(...(await applyStatus(plan.status, subject, context)));
    }
    if (subject !== undefined) for (const note of plan.events ?? []) context.events.record(subject.object, note);
    const failures: Failure[] = [];
    for (const change of plan.changes) {
      try {
        written.push(...(await applyChange(change, subject, context)));
      } catch (error) {
        if (plan.goOn !== true || context.signal.aborted) throw error;
        failures.push({ change, error });
      }
    }
    if (failures.length > 0) throw new PlanFailure(failures, plan.changes.length);
  } finally {
    await cachesShow(written, context);
  }
}

/** What a cache of that kind will show, sooner or later. */
interface Written {
  readonly type: ResourceType;
  shown(cache: Cache, signal: AbortSignal): Promise<boolean>;
}

async function applyStatus(
  status: Readonly<Record<string, unknown>>,
  { type, object }: Subject,
  { client, fieldManager, signal }: ApplyContext,
): Promise<Written[]> {
  if (deepEqual(object['status'] ?? {}, status)) return [];
  const options = { subresource: 'status', fieldManager, signal };
  const updated = client.update(type, { ...object, status }, options);
  return [revisionOf(type, await orStale(type, object.metadata.name, updated))];
}

async function applyChange(change: Change, subject: Subject | undefined, context: ApplyContext): Promise<Written[]> {
  const { log, events } = context;
  const [succeeded, failed] = REASONS[change.do];
  try {
    const { written, already } = await write(change, context);
    if (!already) {
      log.info({ change: change.do, object: describe(change) }, change.why);
      context.onApplied?.(change);
    }
    // Patches are mostly bookkeeping; one that people should hear of names its reason.
    const news = change.do !== 'patch' || change.reason !== undefined;
    if (!already && news && subject !== undefined) {
      events.record(subject.object, { type: 'Normal', reason: change.reason ?? succeeded, message: change.why });
    }
    return written === undefined ? [] : [written];
  } catch (error) {
    if (subject !== undefined && !isStale(error) && !context.signal.aborted) {
      const message = `Cannot ${change.do} ${describe(change)}: ${textOf(error)}`;
      events.record(subject.object, { type: 'Warning', reason: failed, message });
    }
    throw error;
  }
}

interface Outcome {
  readonly written?: Written;
  /** Somebody, most likely we, did it before: nothing to tell. */
  readonly already?: boolean;
}

function write(change: Change, context: ApplyContext): Promise<Outcome> {
  switch (change.do) {
    case 'create':
      return create(change, context);
    case 'patch':
      return patch(change, context);
    case 'delete':
      return remove(change, context);
    default:
      return unreachable(change);
  }
}

async function create({ type, object, subresource }: CreateChange, context: ApplyContext): Promise<Outcome> {
  const { client, fieldManager, signal } = context;
  if (subresource !== undefined) return post({ type, object, subresource }, context);
  try {
    return { written: revisionOf(type, await client.create(type, object, { fieldManager, signal })) };
  } catch (error) {
    if (!isApiError(error, 'AlreadyExists')) throw error;
    // Made by us before, and the cache did not show it yet: that is what was wanted.
    const { namespace, name = '' } = object.metadata;
    const present = await orStale(type, name, client.get(type, { namespace, name }, { signal }));
    if (present.metadata.deletionTimestamp !== undefined) {
      throw conflict(type, name, 'the object of that name is still being deleted');
    }
    if (controllerUid(present) !== controllerUid(object)) throw error;
    return { written: revisionOf(type, present), already: true };
  }
}

/** The answer tells of the request, not of the object, which is asked for then: the caches must come to it. */
async function post(
  { type, object, subresource }: Pick<CreateChange, 'type' | 'object' | 'subresource'>,
  { client, fieldManager, signal }: ApplyContext,
): Promise<Outcome> {
  const { namespace, name = '' } = object.metadata;
  await orStale(type, name, client.create(type, object, { subresource, fieldManager, signal }));
  return { written: revisionOf(type, await orStale(type, name, client.get(type, { namespace, name }, { signal }))) };
}

async function patch(change: PatchChange, { client, fieldManager, signal }: ApplyContext): Promise<Outcome> {
  const { type, name, subresource, uid } = change;
  const { type: patchType, body } = change.patch;
  const guarded = { type: patchType, body: uid === undefined ? body : withUid(body, uid) };
  // Who applies on behalf of a controller owns what it applies.
  const force = patchType === 'apply' ? true : undefined;
  const options = { fieldManager, subresource, force, signal };
  const patched = client.patch(type, name, guarded, options).catch(async (error: unknown) => {
    if (!isApiError(error, 'Invalid')) throw error;
    // Perhaps only a guard has failed: another object has the name now, or it is not as it was, and the plan is stale.
    const present = await client.get(type, name, { signal });
    if (uid !== undefined && present.metadata.uid !== uid) {
      throw conflict(type, name.name, 'the object was deleted and made anew');
    }
    throw isUnfitPatch(error) && isOfOldState(guarded.body, present) ? conflict(type, name.name, MODIFIED) : error;
  });
  return { written: revisionOf(type, await orStale(type, name.name, patched)) };
}

/** Whether a JSON patch that was refused is at odds with the object only because that has changed. */
function isOfOldState(body: unknown, present: Stored): boolean {
  if (!Array.isArray(body)) return false;
  const applies = (count: number): boolean => {
    try {
      applyJsonPatch(present, body.slice(0, count));
      return true;
    } catch {
      return false;
    }
  };
  const firstUnfit = body.findIndex((_, i) => !applies(i + 1));
  const operation: unknown = body[firstUnfit];
  return firstUnfit === -1 || (isRecord(operation) && operation['op'] === 'test');
}

async function remove(change: DeleteChange, { client, signal }: ApplyContext): Promise<Outcome> {
  const { type, name, uid, resourceVersion, gracePeriodSeconds } = change;
  const propagationPolicy = change.propagationPolicy ?? 'Background';
  let already = false;
  try {
    await client.delete(type, name, { uid, resourceVersion, propagationPolicy, gracePeriodSeconds, signal });
  } catch (error) {
    if (!isApiError(error, 'NotFound')) throw error;
    already = true;
  }
  // The API does not say at which revision that was; the cache will show it as gone or on its way.
  const key = keyOf(name);
  const shown: Written['shown'] = (cache, until) => {
    const left = (): boolean => {
      const metadata = cache.get(key)?.metadata;
      return metadata === undefined || metadata.uid !== uid || metadata.deletionTimestamp !== undefined;
    };
    return cache.until(left, { signal: until });
  };
  return { written: { type, shown }, already };
}

/** What was decided about is gone: that is no news for the caller but an old state. */
async function orStale(type: ResourceType, name: string, answer: Promise<Stored>): Promise<Stored> {
  try {
    return await answer;
  } catch (error) {
    // Without a name it is the kind, or the namespace, that is not there.
    if (isApiError(error, 'NotFound') && error.details?.name === name) throw conflict(type, name, 'the object is gone');
    throw error;
  }
}

function revisionOf(type: ResourceType, object: Stored): Written {
  const { resourceVersion } = object.metadata;
  return { type, shown: (cache, signal) => cache.reached(resourceVersion, { signal }) };
}

async function cachesShow(written: readonly Written[], { caches, clock, log, signal }: ApplyContext): Promise<void> {
  if (written.length === 0) return;
  const error = () => new Error('the cache did not show it in time');
  const attempt = startAttempt(clock, { timeoutMs: CACHE_WAIT_MS, error, signal });
  try {
    const waits: Promise<boolean>[] = [];
    for (const { type, shown } of written) {
      for (const cache of caches) if (sameResource(cache.type, type)) waits.push(shown(cache, attempt.signal));
    }
    const all = await Promise.all(waits);
    if (!all.every(Boolean) && !signal.aborted) log.warn({}, 'the cache does not show yet what was written');
  } finally {
    attempt.release();
  }
}

function withUid(body: unknown, uid: string): unknown {
  if (Array.isArray(body)) return [{ op: 'test', path: '/metadata/uid', value: uid }, ...body];
  if (!isRecord(body)) return body;
  const metadata = isRecord(body['metadata']) ? body['metadata'] : {};
  return { ...body, metadata: { ...metadata, uid } };
}

/** The decision was made on a state that is no more: look again, there is nothing to report. */
export function isStale(error: unknown): boolean {
  if (error instanceof PlanFailure) return error.failures.every((failure) => isStale(failure.error));
  return isApiError(error, 'Conflict');
}

export function textOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

function sameResource(a: ResourceType, b: ResourceType): boolean {
  return a.group === b.group && a.plural === b.plural;
}

function describe(change: Change): string {
  const name = change.do === 'create' ? objectKey(change.object) : keyOf(change.name);
  return `${groupResource(change.type)} ${name}`;
}
