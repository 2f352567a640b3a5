/**
 * Limits the Events of a node to its own objects: its Node, pods that are bound to it, objects that own such a pod, and
 * objects whose labels or annotations name the node (volumes). Kubernetes has no such rule: there, a node may record
 * Events on every object, also misleading ones.
 */
import { ownsPodOf } from '#engine/auth/node-reads.ts';
import { decodeStored } from '#engine/encoding/stored-object.ts';
import type { Registry } from '#engine/registry/registry.ts';
import type { Resource } from '#engine/registry/resource.ts';
import type { Store } from '#engine/store/store.ts';
import { isRecord, type KubeObject } from '#kube/meta.ts';

/** Returns why the node must not write this Event, or undefined if it may. */
export function findEventError(
  event: KubeObject,
  node: string,
  { store, registry }: { readonly store: Store; readonly registry: Pick<Registry, 'resources'> },
): string | undefined {
  // The same field of events.k8s.io/v1 is named `regarding`.
  const about = event['involvedObject'] ?? event['regarding'];
  const { kind, name, uid, namespace } = textsOf(about);
  const refusal = `node ${JSON.stringify(node)} can only record events of its own objects, not of ${kind} ${JSON.stringify(name)}`;
  if (kind === 'Node') return name === node ? undefined : refusal;
  const resource = findKind(registry.resources, about);
  if (resource === undefined || name === '') return refusal;
  // Otherwise the object would not be found, and an object that is gone belongs to nobody.
  if (resource.namespaced && namespace !== event.metadata.namespace) return refusal;
  const entry = store.latest(resource.collection, resource.namespaced ? `${namespace}/${name}` : name);
  // An object that is gone belongs to nobody; its uid never returns.
  if (entry === undefined) return uid === '' ? refusal : undefined;
  return isOwnObject(decodeStored(entry.bytes), node, store) ? undefined : refusal;
}

function isOwnObject(object: KubeObject, node: string, store: Store): boolean {
  const { metadata } = object;
  if (isRecord(object['spec']) && object['spec']['nodeName'] === node) return true;
  const marks = [...Object.values(metadata.labels ?? {}), ...Object.values(metadata.annotations ?? {})];
  return (
    marks.includes(node) || ownsPodOf(store, node, { namespace: metadata.namespace ?? '', uid: metadata.uid ?? '' })
  );
}

function findKind(resources: readonly Resource[], about: unknown): Resource | undefined {
  const { apiVersion, kind } = textsOf(about);
  const group = apiVersion.includes('/') ? apiVersion.slice(0, apiVersion.indexOf('/')) : '';
  return resources.find((resource) => resource.kind === kind && resource.group === group);
}

type Reference = Readonly<Record<'apiVersion' | 'kind' | 'name' | 'namespace' | 'uid', string>>;

function textsOf(about: unknown): Reference {
  const fields = isRecord(about) ? about : {};
  const text = (field: string) => (typeof fields[field] === 'string' ? fields[field] : '');
  return {
    apiVersion: text('apiVersion'),
    kind: text('kind'),
    name: text('name'),
    namespace: text('namespace'),
    uid: text('uid'),
  };
}
