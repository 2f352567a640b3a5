/**
 * Custom kinds come and go while requests wait: nothing is created of one whose definition is going away (it would be
 * left behind without its kind), and nothing is written in the shape of a definition that has been replaced.
 */
import type { Guard } from '#engine/admission/admission.ts';
import { isTerminating } from '#engine/admission/is-terminating.ts';
import { peekObject } from '#engine/handlers/selection.ts';
import { CRD_COLLECTION } from '#engine/registry/crd/definition.ts';
import type { Registry } from '#engine/registry/registry.ts';
import type { Resource } from '#engine/registry/resource.ts';
import type { Entry, Store } from '#engine/store/store.ts';
import { ApiError, conflict } from '#kube/api-error.ts';
import { deepEqual } from '#kube/deep.ts';

export function customKindLifecycle(store: Store, registry: Registry): Guard {
  return ({ operation, resource, name }) => {
    if (resource.builtIn) return;
    // In flight counts: a create that passes here is in the log before the definition's deletion.
    const definition = store.latest(CRD_COLLECTION, resource.collection);
    const leaving = definition === undefined || isTerminating(definition);
    if (operation === 'CREATE' && leaving) throw refusal(resource);
    const now = registry.find(resource.group, resource.version, resource.plural)?.resource;
    const isReplaced = now !== undefined && !isSameShape(now, resource);
    // The registry learns of a definition when it is durable; what is written behind it would be taken for new.
    const shown = store.get(CRD_COLLECTION, resource.collection);
    if (isReplaced || (definition !== shown && generationOf(definition) !== generationOf(shown))) {
      throw conflict(resource, name, 'the definition of its kind has changed meanwhile; please try again');
    }
  };
}

function generationOf(entry: Entry | undefined): number | undefined {
  return entry && peekObject(entry).metadata.generation;
}

/** A definition whose status changed makes new values of the same kind. */
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

function refusal({ group, plural }: { group: string; plural: string }): ApiError {
  const message = 'create not allowed while custom resource definition is terminating';
  return new ApiError(405, 'MethodNotAllowed', message, { details: { group, kind: plural } });
}
