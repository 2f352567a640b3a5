/**
 * Guards writes of custom kinds whose definition changes while a request waits: refuses creates of a kind whose
 * definition is being deleted (objects would be left without a kind), and writes in the shape of a replaced definition.
 */
import type { Guard } from '#engine/admission/admission.ts';
import { isTerminating } from '#engine/admission/is-terminating.ts';
import { peekObject } from '#engine/registry/stored-entries.ts';
import { CRD_COLLECTION } from '#engine/registry/crd/definition.ts';
import type { Registry } from '#engine/registry/registry.ts';
import type { Resource } from '#engine/registry/resource.ts';
import type { Entry, Store } from '#engine/store/store.ts';
import { ApiError, conflict } from '#kube/api-error.ts';
import { deepEqual } from '#kube/deep.ts';

export function customKindLifecycle(store: Store, registry: Registry): Guard {
  return ({ operation, resource, name }) => {
    if (resource.builtIn) return;
    // Includes writes in flight: a create that passes here precedes the definition's deletion in the log.
    const definition = store.latest(CRD_COLLECTION, resource.collection);
    const leaving = definition === undefined || isTerminating(definition);
    if (operation === 'CREATE' && leaving) throw terminatingError(resource);
    const now = registry.find(resource.group, resource.version, resource.plural)?.resource;
    const isReplaced = now !== undefined && !isSameShape(now, resource);
    // The registry follows durable definitions, so an object written now would count as newer than the new definition.
    const shown = store.get(CRD_COLLECTION, resource.collection);
    if (isReplaced || (definition !== shown && generationOf(definition) !== generationOf(shown))) {
      throw conflict(resource, name, 'the definition of its kind has changed; please try again');
    }
  };
}

function generationOf(entry: Entry | undefined): number | undefined {
  return entry && peekObject(entry).metadata.generation;
}

/** A status change of a definition creates new values of the same shape. */
function isSameShape(now: Resource, before: Resource): boolean {
  if (now === before) return true;
  if ((now.stored?.webhook === undefined) !== (before.stored?.webhook === undefined)) return false;
  const shape = ({ namespaced, storageVersion, status, schema, stored }: Resource) => ({
    namespaced,
    storageVersion,
    status,
    schema,
    storageSchema: stored?.schemaOf(storageVersion)?.schema,
  });
  return deepEqual(shape(now), shape(before));
}

function terminatingError({ group, plural }: { group: string; plural: string }): ApiError {
  const message = 'create not allowed while custom resource definition is terminating';
  return new ApiError(405, 'MethodNotAllowed', message, { details: { group, kind: plural } });
}
