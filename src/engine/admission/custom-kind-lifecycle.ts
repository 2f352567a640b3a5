/** Nothing is created of a custom kind whose definition is going away: it would be left behind without its kind. */
import type { Guard } from '#engine/admission/admission.ts';
import { isTerminating } from '#engine/admission/is-terminating.ts';
import { CRD_COLLECTION } from '#engine/registry/crd/definition.ts';
import type { Store } from '#engine/store/store.ts';
import { ApiError } from '#kube/api-error.ts';

export function customKindLifecycle(store: Store): Guard {
  return ({ operation, resource }) => {
    if (operation !== 'CREATE' || resource.builtIn) return;
    // In flight counts: a create that passes here is in the log before the definition's deletion.
    const definition = store.latest(CRD_COLLECTION, resource.collection);
    if (definition === undefined || isTerminating(definition)) throw refusal(resource);
  };
}

function refusal({ group, plural }: { group: string; plural: string }): ApiError {
  const message = 'create not allowed while custom resource definition is terminating';
  return new ApiError(405, 'MethodNotAllowed', message, { details: { group, kind: plural } });
}
