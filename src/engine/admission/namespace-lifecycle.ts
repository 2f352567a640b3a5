/** Refuses creates in namespaces that are missing or terminating, and deletes of the system namespaces. */
import type { Guard } from '#engine/admission/admission.ts';
import { isTerminating } from '#engine/admission/is-terminating.ts';
import type { Store } from '#engine/store/store.ts';
import { ApiError, forbidden, notFound } from '#kube/api-error.ts';
import { NAMESPACES } from '#kube/core-kinds.ts';

export const NAMESPACE_COLLECTION = 'namespaces';
export const SYSTEM_NAMESPACES = ['default', 'kube-node-lease', 'kube-public', 'kube-system'] as const;
const UNDELETABLE: ReadonlySet<string> = new Set(['default', 'kube-public', 'kube-system']);

export function namespaceLifecycle(store: Store): Guard {
  return ({ operation, resource, namespace, name }) => {
    if (operation === 'DELETE') {
      if (resource.collection === NAMESPACE_COLLECTION && UNDELETABLE.has(name)) {
        throw forbidden(NAMESPACES, name, 'this namespace may not be deleted');
      }
      return;
    }
    if (operation !== 'CREATE' || !resource.namespaced) return;
    const entry = store.latest(NAMESPACE_COLLECTION, namespace);
    if (entry === undefined) throw notFound(NAMESPACES, namespace);
    if (isTerminating(entry)) throw namespaceTerminatingError(resource, namespace, name);
  };
}

function namespaceTerminatingError(
  resource: { group: string; plural: string },
  namespace: string,
  name: string,
): ApiError {
  const why = `unable to create new content in namespace ${namespace} because it is being terminated`;
  const { code, reason, message, details } = forbidden(resource, name, why);
  const cause = {
    reason: 'NamespaceTerminating',
    message: `namespace ${namespace} is being terminated`,
    field: 'metadata.namespace',
  };
  return new ApiError(code, reason, message, { details: { ...details, causes: [cause] } });
}
