/**
 * DELETE of one object.
 *
 *   held by finalizers, a grace period or its own spec ──► sets deletionTimestamp and responds with the object
 *   otherwise ──► removes the object and responds with a Success Status
 *
 * The propagation policy is recorded as a finalizer; the garbage collector acts on it.
 */
import { readPacedBody } from '#engine/handlers/pace.ts';
import { parseBody } from '#engine/body/decode-body.ts';
import { admissionAttributes } from '#engine/handlers/write/admit.ts';
import { decodeEntry, prepareEntries, type Call } from '#engine/handlers/call.ts';
import { entryId } from '#engine/registry/stored-entries.ts';
import { commitObject } from '#engine/handlers/write/commit.ts';
import { isReleased } from '#engine/handlers/write/modify.ts';
import { respondObject, respondStatus } from '#engine/handlers/respond.ts';
import { assertStillBound } from '#engine/handlers/stored-access.ts';
import { MAX_WRITE_ATTEMPTS } from '#engine/request/limits.ts';
import { FOREGROUND_FINALIZER, ORPHAN_FINALIZER } from '#engine/registry/metadata.ts';
import { deleteOptions, type DeleteRequestOptions, type PropagationPolicy } from '#engine/handlers/options.ts';
import type { ApiResponse } from '#engine/request/request.ts';
import { conflict, MODIFIED, notFound } from '#kube/api-error.ts';
import { deepClone, deepEqual } from '#kube/deep.ts';
import { groupKind, type KubeObject } from '#kube/meta.ts';
import { timestamp } from '#lib/clock.ts';

export async function deleteOne(call: Call): Promise<ApiResponse> {
  const options = await readDeleteOptions(call);
  const { resource } = call.served;
  const { name } = call.route;
  assertStillBound(call);
  const { object, isRemoved } = await deleteNamed(call, name, call.route.namespace, options);
  if (!isRemoved) {
    // Many deletions become durable in the same turn.
    if (call.pace.isLarge) await call.pace.step();
    return respondObject(call, object, { status: 200 });
  }
  return respondStatus({
    kind: 'Status',
    apiVersion: 'v1',
    metadata: {},
    status: 'Success',
    details: {
      name,
      ...(resource.group === '' ? {} : { group: resource.group }),
      kind: resource.plural,
      uid: object.metadata.uid,
    },
  });
}

export async function readDeleteOptions(call: Call): Promise<DeleteRequestOptions> {
  const bytes = await readPacedBody(call);
  const sent =
    bytes.length === 0
      ? undefined
      : parseBody(bytes, call.request.contentType, { kind: 'DeleteOptions', builtIn: true });
  const options = deleteOptions(call.request.query, sent);
  const { defaultPropagation } = call.served.resource.strategy;
  if (defaultPropagation !== undefined && options.propagationPolicy === undefined) {
    call.notes.warn(defaultPropagation.warning);
  }
  return options;
}

interface Deletion {
  readonly object: KubeObject;
  readonly isRemoved: boolean;
}

export async function deleteNamed(
  call: Call,
  name: string,
  namespace: string,
  options: DeleteRequestOptions,
): Promise<Deletion> {
  const { resource } = call.served;
  const id = entryId(resource, namespace, name);
  for (let attempt = 1; attempt <= MAX_WRITE_ATTEMPTS; attempt++) {
    const entry = call.store.latest(resource.collection, id);
    if (entry === undefined) throw notFound(resource, name);
    const reading = prepareEntries(call, [entry]);
    if (reading !== undefined) await reading;
    call.pace.noteSize(entry.bytes.length);
    if (call.pace.isLarge) await call.pace.step();
    const object = decodeEntry(entry, resource);
    assertPreconditions(call, object, options);
    const { dryRun, sent } = options;
    const admitted = admissionAttributes(call, {
      operation: 'DELETE',
      name,
      namespace,
      object: undefined,
      oldObject: object,
      dryRun,
      options: sent,
    });
    if (call.pace.isLarge) await call.pace.step();
    const mutating = call.admission.mutate(admitted);
    if (mutating instanceof Promise) await mutating;
    const validating = call.admission.validate(admitted);
    if (validating instanceof Promise) await validating;
    if (call.pace.isLarge) await call.pace.step();
    const next = startDeletion(call, object, options);
    const isRemoved = isReleased(call, next);
    if (dryRun) {
      call.admission.guard(admitted);
      return { object: next, isRemoved };
    }
    const unchanged = !isRemoved && deepEqual(next, object);
    const { revision: expected } = entry;
    const done = unchanged
      ? call.store.settled(entry)
      : commitObject(call, { id, expected, object: next, admitted, remove: isRemoved });
    if (await done) return { object: next, isRemoved };
  }
  throw conflict(resource, name, MODIFIED);
}

export function assertPreconditions(
  call: Call,
  { metadata }: KubeObject,
  { uid, resourceVersion }: Pick<DeleteRequestOptions, 'uid' | 'resourceVersion'>,
): void {
  const { resource } = call.served;
  // Kubernetes names the kind in these two conflicts, and the resource in others.
  const subject = { group: '', plural: groupKind(resource) };
  const details = { group: resource.group, plural: resource.kind };
  const failPrecondition = (why: string) => {
    const error = conflict(subject, metadata.name ?? '', why);
    return Object.assign(error, { details: conflict(details, metadata.name ?? '', why).details });
  };
  if (uid !== undefined && uid !== metadata.uid) {
    throw failPrecondition(
      `the UID in the precondition (${uid}) does not match the UID in record (${metadata.uid}). The object might have been deleted and then recreated`,
    );
  }
  if (resourceVersion !== undefined && resourceVersion !== metadata.resourceVersion) {
    throw failPrecondition(
      `the ResourceVersion in the precondition (${resourceVersion}) does not match the ResourceVersion in record (${metadata.resourceVersion}). The object might have been modified`,
    );
  }
}

/** Returns the object with its deletion started. */
function startDeletion(call: Call, object: KubeObject, options: DeleteRequestOptions): KubeObject {
  const { strategy } = call.served.resource;
  const next = deepClone(object);
  const { metadata } = next;
  const finalizers = withPolicy(
    metadata.finalizers ?? [],
    options.propagationPolicy,
    strategy.defaultPropagation?.policy,
  );
  if (finalizers.length > 0) metadata.finalizers = finalizers;
  else delete metadata.finalizers;

  if (metadata.deletionTimestamp !== undefined) {
    shortenGrace(call, next, options.gracePeriodSeconds);
    return next;
  }
  const grace = strategy.graceSeconds?.(object, options.gracePeriodSeconds) ?? 0;
  metadata.deletionTimestamp = timestamp(call.clock.now() + grace * 1000);
  metadata.deletionGracePeriodSeconds = grace;
  if (metadata.generation !== undefined) metadata.generation++;
  strategy.beginDeletion?.(next);
  return next;
}

/** Shortens the grace period. A later delete may only shorten it; it still counts from the first one. */
function shortenGrace(call: Call, object: KubeObject, requested: number | undefined): void {
  const { metadata } = object;
  const before = metadata.deletionGracePeriodSeconds ?? 0;
  if (requested === undefined || before === 0) return;
  const grace = call.served.resource.strategy.graceSeconds?.(object, requested) ?? 0;
  if (grace >= before) return;
  metadata.deletionTimestamp = timestamp(Date.parse(metadata.deletionTimestamp!) - (before - grace) * 1000);
  metadata.deletionGracePeriodSeconds = grace;
}

function withPolicy(
  finalizers: readonly string[],
  requested: PropagationPolicy | undefined,
  usual: PropagationPolicy | undefined,
): string[] {
  const kept = finalizers.filter((name) => name !== ORPHAN_FINALIZER && name !== FOREGROUND_FINALIZER);
  // An existing finalizer already determines the policy.
  const policy = requested ?? (kept.length === finalizers.length ? usual : undefined);
  if (policy === undefined) return [...finalizers];
  if (policy === 'Orphan') kept.push(ORPHAN_FINALIZER);
  if (policy === 'Foreground') kept.push(FOREGROUND_FINALIZER);
  return kept;
}
