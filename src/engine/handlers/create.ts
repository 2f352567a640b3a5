/** POST to a collection: shape, name, identity, admission, then one durable write. */
import { admissionAttributes } from '#engine/handlers/write/admit.ts';
import type { Call } from '#engine/handlers/call.ts';
import { entryId } from '#engine/registry/stored-entries.ts';
import { commitObject } from '#engine/handlers/write/commit.ts';
import { copyOf, keepManagedFields, trackWrite } from '#engine/handlers/write/own-fields.ts';
import { readRequestObject } from '#engine/handlers/write/read-object.ts';
import { respondEntry, respondObject } from '#engine/handlers/respond.ts';
import { shapeInTurns, shapeObject, validateNew } from '#engine/handlers/write/shape.ts';
import { MAX_NAME_ATTEMPTS } from '#engine/request/limits.ts';
import { writeOptions, type WriteRequestOptions } from '#engine/handlers/options.ts';
import type { ApiResponse } from '#engine/request/request.ts';
import { timestamp } from '#lib/clock.ts';
import { generateName, newUid } from '#lib/ids.ts';
import { alreadyExists, badRequest, generateNameConflict } from '#kube/api-error.ts';
import type { KubeObject } from '#kube/meta.ts';

export async function createObject(call: Call): Promise<ApiResponse> {
  const options = writeOptions(call.request.query, 'CreateOptions');
  const object = await readRequestObject(call);
  if (object.metadata.resourceVersion) throw badRequest('resourceVersion should not be set on objects to be created');
  const { fieldValidation } = options;
  const warnings = call.pace.isLarge
    ? await shapeInTurns(call, object, fieldValidation)
    : shapeObject(call, object, fieldValidation);
  // Tracked before admission: changes by admission belong to no manager, as in Kubernetes.
  trackWrite(call, object, undefined, options.fieldManager);
  const made = await createShaped(call, object, { ...options, warnings });
  if (made === undefined) throw alreadyExists(call.served.resource, object.metadata.name ?? '');
  return made;
}

interface Creation extends Pick<WriteRequestOptions, 'dryRun' | 'sent'> {
  readonly warnings: readonly string[];
  /** True if the caller has already set managedFields. */
  readonly owned?: boolean;
}

/** Creates an object that has the shape of its kind and its managedFields. Returns undefined if the name is in use. */
export async function createShaped(
  call: Call,
  object: KubeObject,
  options: Creation,
): Promise<ApiResponse | undefined> {
  const { resource } = call.served;
  const { managedFields } = object.metadata;
  const attributesOf = (candidate: KubeObject) =>
    admissionAttributes(call, {
      operation: 'CREATE',
      name: candidate.metadata.name ?? '',
      object: candidate,
      oldObject: undefined,
      dryRun: options.dryRun,
      options: options.sent,
    });
  if (call.pace.isLarge) await call.pace.step();
  const mutating = call.admission.mutate(attributesOf(object));
  if (mutating instanceof Promise) await mutating;
  setServerFields(call, object);
  keepManagedFields(call, object, managedFields);
  if (!resource.builtIn && resource.status) delete object['status'];

  const generate = !object.metadata.name && object.metadata.generateName;
  for (let attempt = 1; ; attempt++) {
    // A kind's preparation may depend on the name, so each generated name starts from the original object.
    const candidate = generate ? copyOf(object, { withOwners: true }) : object;
    if (generate) candidate.metadata.name = generateName(object.metadata.generateName!);
    const name = candidate.metadata.name ?? '';
    resource.strategy.prepareForCreate?.(candidate);
    if (call.pace.isLarge) await call.pace.step();
    const checking = validateNew(call, candidate);
    if (checking instanceof Promise) await checking;
    if (call.pace.isLarge) await call.pace.step();
    const admitted = attributesOf(candidate);
    const validating = call.admission.validate(admitted);
    if (validating instanceof Promise) await validating;
    if (call.pace.isLarge) await call.pace.step();
    const warnings = [...options.warnings, ...(resource.strategy.warnings?.(candidate) ?? [])];
    const id = entryId(resource, call.route.namespace, name);
    if (options.dryRun) {
      call.admission.guard(admitted);
      if (call.store.latest(resource.collection, id) !== undefined) return undefined;
      return respondObject(call, candidate, { status: 201, warnings });
    }
    const { owned } = options;
    const entry = await commitObject(call, { id, expected: 0, object: candidate, admitted, owned });
    if (entry !== undefined) return respondEntry(call, entry, { status: 201, warnings });
    if (!generate) return undefined;
    if (attempt >= MAX_NAME_ATTEMPTS) throw generateNameConflict(resource, name);
  }
}

/** Sets the fields that only the server decides for a new object. */
function setServerFields(call: Call, object: KubeObject): void {
  const { metadata } = object;
  delete metadata.deletionTimestamp;
  delete metadata.deletionGracePeriodSeconds;
  delete (metadata as Record<string, unknown>)['selfLink'];
  delete metadata.resourceVersion;
  metadata.uid = newUid();
  metadata.creationTimestamp = timestamp(call.clock.now());
  if (call.served.resource.generation) metadata.generation = 1;
  else delete metadata.generation;
}
