/** Keeps the fields that an update may not change. */
import type { Call } from '#engine/handlers/call.ts';
import type { KubeObject, ObjectMeta } from '#kube/meta.ts';

/** Fields that only the server writes: an update that omits them keeps them. */
const SERVER_FIELDS = [
  'uid',
  'creationTimestamp',
  'deletionTimestamp',
  'deletionGracePeriodSeconds',
  'generation',
] as const;

export function keepServerFields(next: KubeObject, old: KubeObject): void {
  const to = next.metadata as Record<string, unknown>;
  const from = old.metadata as ObjectMeta & Record<string, unknown>;
  delete to['selfLink'];
  to['generation'] = from.generation;
  for (const field of SERVER_FIELDS) {
    to[field] ??= from[field];
    if (to[field] === undefined) delete to[field];
  }
}

/** The main path does not change the status; the status path changes nothing else. */
export function keepSubresourceFields(call: Call, next: KubeObject, old: KubeObject): void {
  const { resource } = call.served;
  switch (call.route.subresource) {
    case '':
      if (resource.status) keep(next, old, 'status');
      return;
    case 'status':
      keepAllBut(next, old, ['status']);
      if (resource.builtIn) keepOwnership(next, old);
      else keepMetadata(next, old);
      return;
    case 'finalize':
      keepAllBut(next, old, ['spec']);
      return;
  }
}

/**
 * Keeps what decides about the life of an object. Kubernetes protects the owners of pods in this way; labels and
 * annotations of built-in kinds may change with the status, as in Kubernetes.
 */
function keepOwnership({ metadata }: KubeObject, old: KubeObject): void {
  const { ownerReferences, finalizers } = old.metadata;
  if (ownerReferences === undefined) delete metadata.ownerReferences;
  else metadata.ownerReferences = ownerReferences;
  if (finalizers === undefined) delete metadata.finalizers;
  else metadata.finalizers = finalizers;
}

/** Keeps all metadata except managedFields and the revision that the caller requires. */
function keepMetadata(next: KubeObject, { metadata }: KubeObject): void {
  const { resourceVersion, managedFields } = next.metadata;
  next.metadata = { ...metadata, resourceVersion };
  if (managedFields === undefined) delete next.metadata.managedFields;
  else next.metadata.managedFields = managedFields;
}

function keepAllBut(next: KubeObject, old: KubeObject, changing: readonly string[]): void {
  const free = new Set([...changing, 'metadata', 'apiVersion', 'kind']);
  for (const field of new Set([...Object.keys(next), ...Object.keys(old)])) {
    if (!free.has(field)) keep(next, old, field);
  }
}

function keep(next: KubeObject, old: KubeObject, field: string): void {
  if (old[field] === undefined) delete next[field];
  else next[field] = old[field];
}
