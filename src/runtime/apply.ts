/**
 * The only writer: applies a plan. Applying a plan twice has the same effect as once: it is not an error if an object
 * exists already, or no longer. Returns only after the caches show the writes, so that the next reconcile of the same
 * key sees them.
 */
import { startAttempt } from '#client/abort.ts';
import type { Client } from '#client/client.ts';
import { keyOf, objectKey } from '#client/object-key.ts';
import { conflict, isApiError, isInapplicablePatch, MODIFIED } from '#kube/api-error.ts';
import { applyJsonPatch } from '#kube/patches/json-patch.ts';
import { controllerUid, groupResource, isRecord } from '#kube/meta.ts';
import type { ResourceType, Stored } from '#kube/meta.ts';
import type { Clock } from '#lib/clock.ts';
import { unreachable } from '#lib/invariant.ts';
import type { Log } from '#lib/log.ts';
import type { EventSink } from '#runtime/events.ts';
import { checkPlan } from '#runtime/plan.ts';
import type { Change, CreateChange, DeleteChange, FailedChange, PatchChange, Plan } from '#runtime/plan.ts';
import { deepEqual } from '#kube/deep.ts';
import { errorMessage } from '#lib/error-message.ts';

/** The part of an informer that is needed to wait until it shows a write. */
export interface Cache {
  readonly type: ResourceType;
  get(key: string): Stored | undefined;
  list(): readonly Stored[];
  waitForRevision(resourceVersion: string, options: { signal: AbortSignal }): Promise<boolean>;
  waitUntil(ready: () => boolean, options: { signal: AbortSignal }): Promise<boolean>;
}

/** The object that the plan is about. Its status is written, and Events refer to it. */
export interface PlanSubject {
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
  /** Called once for each change that was newly applied. */
  readonly onApplied?: (change: Change) => void;
}

/** The longest wait for the caches. A stuck cache must not block the queue. */
const CACHE_WAIT_MS = 10_000;

const REASONS = {
  create: ['SuccessfulCreate', 'FailedCreate'],
  patch: ['SuccessfulPatch', 'FailedPatch'],
  delete: ['SuccessfulDelete', 'FailedDelete'],
} as const;

/** The failed changes of a plan with continueOnError. */
export class PlanFailure extends AggregateError {
  override readonly name = 'PlanFailure';
  readonly failures: readonly FailedChange[];

  constructor(failures: readonly FailedChange[], tried: number) {
    const [first] = failures;
    const reason = first === undefined ? '' : `: ${describe(first.change)}: ${errorMessage(first.error)}`;
    super(
      failures.map(({ error }) => error),
      `Cannot apply ${failures.length} of ${tried} changes${reason}`,
    );
    this.failures = failures;
  }
}

/** Throws the errors of the API. A Conflict means that the decision was based on an outdated state (isStale). */
export async function applyPlan(plan: Plan, subject: PlanSubject | undefined, context: ApplyContext): Promise<void> {
  checkPlan(plan);
  const pending: PendingWrite[] = [];
  try {
    // Written first, because a conflict shows that the plan is based on an outdated state before anything is changed.
    if (plan.status !== undefined && subject !== undefined) {
      pending.push(...(await applyStatus(plan.status, subject, context)));
    }
    if (subject !== undefined) for (const note of plan.events ?? []) context.events.record(subject.object, note);
    const failures: FailedChange[] = [];
    for (const change of plan.changes) {
      try {
        pending.push(...(await applyChange(change, subject, context)));
      } catch (error) {
        if (plan.continueOnError !== true || context.signal.aborted) throw error;
        failures.push({ change, error });
      }
    }
    if (failures.length > 0) throw new PlanFailure(failures, plan.changes.length);
  } finally {
    await waitForCaches(pending, context);
  }
}

/** A write that the caches of its kind will show eventually. */
interface PendingWrite {
  readonly type: ResourceType;
  waitFor(cache: Cache, signal: AbortSignal): Promise<boolean>;
}

async function applyStatus(
  status: Readonly<Record<string, unknown>>,
  { type, object }: PlanSubject,
  { client, fieldManager, signal }: ApplyContext,
): Promise<PendingWrite[]> {
  if (deepEqual(object['status'] ?? {}, status)) return [];
  const options = { subresource: 'status', fieldManager, signal };
  const updated = client.update(type, { ...object, status }, options);
  return [pendingRevision(type, await staleIfNotFound(type, object.metadata.name, updated))];
}

async function applyChange(
  change: Change,
  subject: PlanSubject | undefined,
  context: ApplyContext,
): Promise<PendingWrite[]> {
  const { log, events } = context;
  const [succeeded, failed] = REASONS[change.do];
  try {
    const { pending, wasApplied } = await writeChange(change, context);
    if (!wasApplied) {
      log.info({ change: change.do, object: describe(change) }, change.why);
      context.onApplied?.(change);
    }
    // Most patches are bookkeeping; one that is of interest to users has a reason.
    const isOfInterest = change.do !== 'patch' || change.reason !== undefined;
    if (!wasApplied && isOfInterest && subject !== undefined) {
      events.record(subject.object, { type: 'Normal', reason: change.reason ?? succeeded, message: change.why });
    }
    return pending === undefined ? [] : [pending];
  } catch (error) {
    if (subject !== undefined && !isStale(error) && !context.signal.aborted) {
      const message = `Cannot ${change.do} ${describe(change)}: ${errorMessage(error)}`;
      events.record(subject.object, { type: 'Warning', reason: failed, message });
    }
    throw error;
  }
}

interface WriteResult {
  readonly pending?: PendingWrite;
  /** True if the change was already applied, most likely by us, so that there is nothing to report. */
  readonly wasApplied?: boolean;
}

function writeChange(change: Change, context: ApplyContext): Promise<WriteResult> {
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

async function create(change: CreateChange, context: ApplyContext): Promise<WriteResult> {
  const { type, object, subresource, isSame } = change;
  const { client, fieldManager, signal } = context;
  if (subresource !== undefined) return createSubresource({ type, object, subresource }, context);
  try {
    return { pending: pendingRevision(type, await client.create(type, object, { fieldManager, signal })) };
  } catch (error) {
    if (!isApiError(error, 'AlreadyExists')) throw error;
    // Most likely we created it and the cache does not show it yet.
    const { namespace, name = '' } = object.metadata;
    const present = await staleIfNotFound(type, name, client.get(type, { namespace, name }, { signal }));
    if (present.metadata.deletionTimestamp !== undefined) {
      throw conflict(type, name, 'the object of that name is still being deleted');
    }
    if (isSame !== undefined && !isSame(present)) throw conflict(type, name, 'another object has that name');
    if (isSame === undefined && controllerUid(present) !== controllerUid(object)) throw error;
    return { pending: pendingRevision(type, present), wasApplied: true };
  }
}

/**
 * POSTs to a subresource. The response is not the object, which is read afterwards: the caches must reach its revision.
 */
async function createSubresource(
  { type, object, subresource }: Pick<CreateChange, 'type' | 'object' | 'subresource'>,
  { client, fieldManager, signal }: ApplyContext,
): Promise<WriteResult> {
  const { namespace, name = '' } = object.metadata;
  await staleIfNotFound(type, name, client.create(type, object, { subresource, fieldManager, signal }));
  const present = await staleIfNotFound(type, name, client.get(type, { namespace, name }, { signal }));
  return { pending: pendingRevision(type, present) };
}

async function patch(change: PatchChange, { client, fieldManager, signal }: ApplyContext): Promise<WriteResult> {
  const { type, name, subresource, uid } = change;
  const { type: patchType, body } = change.patch;
  const guardedPatch = { type: patchType, body: uid === undefined ? body : withUid(body, uid) };
  // Controllers own the fields that they apply.
  const force = patchType === 'apply' ? true : undefined;
  const options = { fieldManager, subresource, force, signal };
  const patched = client.patch(type, name, guardedPatch, options).catch(async (error: unknown) => {
    if (!isApiError(error, 'Invalid')) throw error;
    // The plan is stale if only a precondition failed: the name belongs to another object, or the object has changed.
    const present = await client.get(type, name, { signal });
    if (uid !== undefined && present.metadata.uid !== uid) {
      throw conflict(type, name.name, 'the object was deleted and created again');
    }
    throw isInapplicablePatch(error) && isOutdated(guardedPatch.body, present)
      ? conflict(type, name.name, MODIFIED)
      : error;
  });
  return { pending: pendingRevision(type, await staleIfNotFound(type, name.name, patched)) };
}

/** Reports whether a refused JSON patch does not apply only because the object has changed since the decision. */
function isOutdated(body: unknown, present: Stored): boolean {
  if (!Array.isArray(body)) return false;
  const applies = (count: number): boolean => {
    try {
      applyJsonPatch(present, body.slice(0, count));
      return true;
    } catch {
      return false;
    }
  };
  const firstFailing = body.findIndex((_, i) => !applies(i + 1));
  const operation: unknown = body[firstFailing];
  return firstFailing === -1 || (isRecord(operation) && operation['op'] === 'test');
}

async function remove(change: DeleteChange, { client, signal }: ApplyContext): Promise<WriteResult> {
  const { type, name, uid, resourceVersion, gracePeriodSeconds } = change;
  const propagationPolicy = change.propagationPolicy ?? 'Background';
  let wasApplied = false;
  try {
    await client.delete(type, name, { uid, resourceVersion, propagationPolicy, gracePeriodSeconds, signal });
  } catch (error) {
    if (!isApiError(error, 'NotFound')) throw error;
    wasApplied = true;
  }
  // The API does not return the revision of the deletion; the cache will show the object as absent or being deleted.
  const key = keyOf(name);
  const waitFor: PendingWrite['waitFor'] = (cache, until) => {
    const isGone = (): boolean => {
      const metadata = cache.get(key)?.metadata;
      return metadata === undefined || metadata.uid !== uid || metadata.deletionTimestamp !== undefined;
    };
    return cache.waitUntil(isGone, { signal: until });
  };
  return { pending: { type, waitFor }, wasApplied };
}

/** Treats the absence of the object as an outdated state. */
async function staleIfNotFound(type: ResourceType, name: string, response: Promise<Stored>): Promise<Stored> {
  try {
    return await response;
  } catch (error) {
    // Without a name, it is the kind or the namespace that does not exist.
    if (isApiError(error, 'NotFound') && error.details?.name === name) {
      throw conflict(type, name, 'the object no longer exists');
    }
    throw error;
  }
}

function pendingRevision(type: ResourceType, object: Stored): PendingWrite {
  const { resourceVersion } = object.metadata;
  return { type, waitFor: (cache, signal) => cache.waitForRevision(resourceVersion, { signal }) };
}

async function waitForCaches(
  pending: readonly PendingWrite[],
  { caches, clock, log, signal }: ApplyContext,
): Promise<void> {
  if (pending.length === 0) return;
  const error = () => new Error('the caches did not show the writes in time');
  const attempt = startAttempt(clock, { timeoutMs: CACHE_WAIT_MS, error, signal });
  try {
    const waiting: Promise<boolean>[] = [];
    for (const { type, waitFor } of pending) {
      for (const cache of caches) if (isSameResource(cache.type, type)) waiting.push(waitFor(cache, attempt.signal));
    }
    const all = await Promise.all(waiting);
    if (!all.every(Boolean) && !signal.aborted) log.warn({}, 'the caches do not show the latest writes yet');
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

/** Reports whether the decision was based on an outdated state: reconcile again, there is nothing to report. */
export function isStale(error: unknown): boolean {
  if (error instanceof PlanFailure) return error.failures.every((failure) => isStale(failure.error));
  return isApiError(error, 'Conflict');
}

function isSameResource(a: ResourceType, b: ResourceType): boolean {
  return a.group === b.group && a.plural === b.plural;
}

function describe(change: Change): string {
  const name = change.do === 'create' ? objectKey(change.object) : keyOf(change.name);
  return `${groupResource(change.type)} ${name}`;
}
