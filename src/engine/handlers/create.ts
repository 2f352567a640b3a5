/** POST to a collection: shape, name, identity, admission, then one durable write. */
import { admissionAttributes } from '#engine/handlers/admit.ts';
import { entryId, type Call } from '#engine/handlers/call.ts';
import { commit } from '#engine/handlers/commit.ts';
import { readObject } from '#engine/handlers/read-object.ts';
import { respondEntry, respondObject } from '#engine/handlers/respond.ts';
import { shapeObject, validateNew } from '#engine/handlers/shape.ts';
import { MAX_NAME_ATTEMPTS } from '#engine/limits.ts';
import { writeOptions } from '#engine/options.ts';
import type { ApiResponse } from '#engine/request.ts';
import { timestamp } from '#lib/clock.ts';
import { generatedName, newUid } from '#lib/ids.ts';
import { alreadyExists, badRequest, generateNameConflict } from '#kube/api-error.ts';
import { deepClone } from '#kube/deep.ts';
import type { KubeObject } from '#kube/meta.ts';

export async function create(call: Call): Promise<ApiResponse> {
  const { resource } = call.served;
  const options = writeOptions(call.request.query, 'CreateOptions');
  const object = await readObject(call);
  if (object.metadata.resourceVersion) throw badRequest('resourceVersion should not be set on objects to be created');
  const warnings = shapeObject(call, object, options.fieldValidation);
  const asked = (candidate: KubeObject) =>
    admissionAttributes(call, {
      operation: 'CREATE',
      name: candidate.metadata.name ?? '',
      object: candidate,
      oldObject: undefined,
      dryRun: options.dryRun,
      options: options.sent,
    });
  const mutating = call.admission.mutate(asked(object));
  if (mutating instanceof Promise) await mutating;
  stampNew(call, object);
  if (!resource.builtIn && resource.status) delete object['status'];

  const generate = !object.metadata.name && object.metadata.generateName;
  for (let attempt = 1; ; attempt++) {
    // What a kind prepares may depend on the name, so that each name starts from what was sent.
    const candidate = generate ? deepClone(object) : object;
    if (generate) candidate.metadata.name = generatedName(object.metadata.generateName!);
    const name = candidate.metadata.name ?? '';
    resource.strategy.prepareForCreate?.(candidate);
    validateNew(call, candidate);
    const admitted = asked(candidate);
    const validating = call.admission.validate(admitted);
    if (validating instanceof Promise) await validating;
    const told = [...warnings, ...(resource.strategy.warnings?.(candidate) ?? [])];
    const id = entryId(resource, call.route.namespace, name);
    if (options.dryRun) {
      call.admission.guard(admitted);
      if (call.store.latest(resource.collection, id) !== undefined) throw alreadyExists(resource, name);
      return respondObject(call, candidate, { status: 201, warnings: told });
    }
    const entry = await commit(call, { id, expected: 0, object: candidate, admitted });
    if (entry !== undefined) return respondEntry(call, entry, { status: 201, warnings: told });
    if (!generate) throw alreadyExists(resource, name);
    if (attempt >= MAX_NAME_ATTEMPTS) throw generateNameConflict(resource, name);
  }
}

/** What only the server decides about a new object. */
function stampNew(call: Call, object: KubeObject): void {
  const { metadata } = object;
  delete metadata.deletionTimestamp;
  delete metadata.deletionGracePeriodSeconds;
  delete (metadata as Record<string, unknown>)['selfLink'];
  delete metadata.resourceVersion;
  delete metadata.managedFields;
  metadata.uid = newUid();
  metadata.creationTimestamp = timestamp(call.clock.now());
  if (call.served.resource.generation) metadata.generation = 1;
  else delete metadata.generation;
}
