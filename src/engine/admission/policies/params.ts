/** Reads the parameters of a policy under a binding from the store. */
import type { ParamRef } from '#engine/admission/policies/policy-spec.ts';
import type { ParamKind } from '#engine/expressions/compile-policy.ts';
import { entryFilter, entryId, idPrefix, peekObject } from '#engine/registry/stored-entries.ts';
import type { Registry } from '#engine/registry/registry.ts';
import type { Resource } from '#engine/registry/resource.ts';
import type { Entry, Store } from '#engine/store/store.ts';
import { labelRequirementsOf } from '#kube/selectors/label-selector.ts';
import { apiVersionOf, parseApiVersion, type KubeObject } from '#kube/meta.ts';

/** The reason why a policy cannot be evaluated under a binding. The failurePolicy decides the consequence. */
interface ParamsError {
  readonly error: string;
}

/** Bounds the cost of one request. */
const MAX_PARAMS = 1000;

/** Returns one parameter for each evaluation; undefined means without parameter. */
export function collectParams(
  kind: ParamKind | undefined,
  ref: ParamRef | undefined,
  namespace: string,
  { store, registry }: { readonly store: Store; readonly registry: Registry },
): readonly (KubeObject | undefined)[] | ParamsError {
  if (kind === undefined || ref === undefined) return [undefined];
  const resource = paramResource(kind, registry);
  if (resource === undefined) {
    return { error: `paramKind kind \`${kind.apiVersion}, Kind=${kind.kind}\` not known` };
  }
  if (!resource.namespaced && ref.namespace) {
    return { error: 'paramRef.namespace must not be provided for a cluster-scoped `paramKind`' };
  }
  const within = resource.namespaced ? ref.namespace || namespace : '';
  if (resource.namespaced && within === '') {
    return { error: 'cannot use namespaced paramRef in policy binding that matches cluster-scoped resources' };
  }
  const found = ref.name ? findNamed(ref.name, within, resource, store) : findSelected(ref, within, resource, store);
  if (found === undefined) return { error: `more than ${MAX_PARAMS} objects match the selector of paramRef` };
  if (found.length === 0 && ref.parameterNotFoundAction === 'Deny') {
    return { error: 'no params found for policy binding with `Deny` parameterNotFoundAction' };
  }
  return found;
}

/** Returns undefined if the kind is not served. */
export function paramResource({ apiVersion = '', kind }: ParamKind, registry: Registry): Resource | undefined {
  const { group, version } = parseApiVersion(apiVersion);
  return registry.resources.find(
    (one) => one.group === group && one.version === version && one.kind === kind && one.verbs.includes('list'),
  );
}

function findNamed(name: string, namespace: string, resource: Resource, store: Store): KubeObject[] {
  const entry = store.get(resource.collection, entryId(resource, namespace, name));
  return entry === undefined ? [] : [decodeShared(entry, resource)];
}

function findSelected(
  { selector }: ParamRef,
  namespace: string,
  resource: Resource,
  store: Store,
): KubeObject[] | undefined {
  const matches = entryFilter(resource, { labels: labelRequirementsOf(selector ?? {}), fields: [] });
  const { entries } = store.list(resource.collection, { prefix: idPrefix(resource, namespace) });
  const found: Entry[] = [];
  for (const entry of entries) {
    if (matches !== undefined && !matches(entry)) continue;
    if (found.push(entry) > MAX_PARAMS) return undefined;
  }
  return found.map((entry) => decodeShared(entry, resource));
}

/** Expressions only read parameters, so they share recently parsed ones. */
function decodeShared(entry: Entry, resource: Resource): KubeObject {
  const object = peekObject(entry);
  const apiVersion = apiVersionOf(resource);
  return object.apiVersion === apiVersion ? object : { ...object, apiVersion };
}
