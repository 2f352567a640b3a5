/** The parameters of a policy under a binding, read from the store as they are now. */
import { decodeStored } from '#engine/codec.ts';
import type { ParamKind, ParamRef } from '#engine/admission/policies/policy-spec.ts';
import type { Registry } from '#engine/registry/registry.ts';
import type { Resource } from '#engine/registry/resource.ts';
import type { Entry, Store } from '#engine/store/store.ts';
import { labelRequirementsOf, matchesLabels } from '#kube/label-selector.ts';
import { apiVersionOf, parseApiVersion, type KubeObject } from '#kube/meta.ts';

/** The policy cannot be asked under this binding; what that means is for its failurePolicy to say. */
export interface ParamsFault {
  readonly fault: string;
}

/** A selector may not make one request cost without bound. */
const MAX_PARAMS = 1000;

/** One evaluation for each; undefined stands for "without parameter". */
export function collectParams(
  kind: ParamKind | undefined,
  ref: ParamRef | undefined,
  namespace: string,
  { store, registry }: { readonly store: Store; readonly registry: Registry },
): readonly (KubeObject | undefined)[] | ParamsFault {
  if (kind === undefined || ref === undefined) return [undefined];
  const resource = resourceOf(kind, registry);
  if (resource === undefined) {
    return { fault: `paramKind kind \`${kind.apiVersion}, Kind=${kind.kind}\` not known` };
  }
  if (!resource.namespaced && ref.namespace) {
    return { fault: 'paramRef.namespace must not be provided for a cluster-scoped `paramKind`' };
  }
  const within = resource.namespaced ? ref.namespace || namespace : '';
  if (resource.namespaced && within === '') {
    return { fault: 'cannot use namespaced paramRef in policy binding that matches cluster-scoped resources' };
  }
  const found = ref.name ? named(ref.name, within, resource, store) : selected(ref, within, resource, store);
  if (found === undefined) return { fault: `more than ${MAX_PARAMS} objects match the selector of paramRef` };
  if (found.length === 0 && ref.parameterNotFoundAction === 'Deny') {
    return { fault: 'no params found for policy binding with `Deny` parameterNotFoundAction' };
  }
  return found;
}

function resourceOf({ apiVersion = '', kind }: ParamKind, registry: Registry): Resource | undefined {
  const { group, version } = parseApiVersion(apiVersion);
  return registry.resources.find(
    (one) => one.group === group && one.version === version && one.kind === kind && one.verbs.includes('list'),
  );
}

function named(name: string, namespace: string, resource: Resource, store: Store): KubeObject[] {
  const entry = store.get(resource.collection, resource.namespaced ? `${namespace}/${name}` : name);
  return entry === undefined ? [] : [decoded(entry, resource)];
}

function selected(
  { selector }: ParamRef,
  namespace: string,
  resource: Resource,
  store: Store,
): KubeObject[] | undefined {
  const requirements = labelRequirementsOf(selector ?? {});
  const { entries } = store.list(resource.collection, resource.namespaced ? { prefix: `${namespace}/` } : {});
  const found: KubeObject[] = [];
  for (const entry of entries) {
    const object = decoded(entry, resource);
    if (!matchesLabels(requirements, object.metadata.labels)) continue;
    if (found.push(object) > MAX_PARAMS) return undefined;
  }
  return found;
}

const known = new WeakMap<Entry, KubeObject>();

/** Expressions only read, so that one decoded object serves all of them. */
function decoded(entry: Entry, resource: Resource): KubeObject {
  let object = known.get(entry);
  if (object === undefined) known.set(entry, (object = decodeStored(entry.bytes)));
  const apiVersion = apiVersionOf(resource);
  return object.apiVersion === apiVersion ? object : { ...object, apiVersion };
}
