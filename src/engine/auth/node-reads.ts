/**
 * Limits nodes to what is bound to them: Kubernetes' node authorizer. All nodes share one role, so this separates them.
 * Applies to every verb that names an object, not only to `get`: errors of a patch and the patched object, too, show
 * what is stored. What a node may write of its own objects is decided by admission (node-restriction.ts, policies).
 *
 *   Secrets, ConfigMaps    those that pods of the node reference
 *   pods                   those that are bound to the node; lists need the field selector spec.nodeName
 *   custom kinds with the annotation NODE_LABEL_ANNOTATION
 *                          objects that own a pod of the node, or whose label or fields name the node; lists need the label
 *   custom kinds with the annotation NODE_COMPANION_ANNOTATION
 *                          objects with the name of such an object of another kind; no lists
 */
import type { Attributes, AuthorizationDecision, ResourceRequestAttributes } from '#engine/auth/authorize.ts';
import { NODE_USER_PREFIX, NODES } from '#engine/auth/groups.ts';
import type { RbacAuthorizer } from '#engine/auth/rbac/rbac-authorizer.ts';
import { decodeStored } from '#engine/encoding/stored-object.ts';
import type { UserInfo } from '#engine/request/request.ts';
import type { Entry, Store } from '#engine/store/store.ts';
import { deepEqual } from '#kube/deep.ts';
import { isRecord } from '#kube/meta.ts';
import { NODE_COMPANION_ANNOTATION, NODE_FIELDS_ANNOTATION, NODE_LABEL_ANNOTATION } from '#kube/node-user.ts';
import { parseFieldSelector } from '#kube/selectors/field-selector.ts';
import { parseLabelSelector } from '#kube/selectors/label-selector.ts';

/** The pod fields that reference each resource, at any nesting. */
const REFERENCES: ReadonlyMap<string, Readonly<Record<string, string>>> = new Map<string, Record<string, string>>([
  [
    'secrets',
    {
      ...{ secret: 'secretName', secretKeyRef: 'name', secretRef: 'name', nodePublishSecretRef: 'name' },
      imagePullSecrets: 'name',
    },
  ],
  ['configmaps', { configMap: 'name', configMapKeyRef: 'name', configMapRef: 'name' }],
]);
const MAX_DEPTH = 12;

/** Wraps an authorizer and refuses nodes the objects that are not bound to them. */
export function withNodeReads(inner: RbacAuthorizer, store: Store): RbacAuthorizer {
  return {
    authorize: (user, attributes) => decideForNode(user, attributes, store) ?? inner.authorize(user, attributes),
    rulesFor: (user, namespace) => inner.rulesFor(user, namespace),
    heldRules: (user, namespace) => inner.heldRules(user, namespace),
    rulesOfRole: (ref, namespace) => inner.rulesOfRole(ref, namespace),
    stop: () => inner.stop(),
  };
}

/** Returns undefined unless a node asks for one of these resources. */
function decideForNode(user: UserInfo, attributes: Attributes, store: Store): AuthorizationDecision | undefined {
  if ('path' in attributes || !user.groups.includes(NODES)) return undefined;
  const { verb, group, resource, namespace, name } = attributes;
  const node = user.name.startsWith(NODE_USER_PREFIX) ? user.name.slice(NODE_USER_PREFIX.length) : '';
  if (group === '' && resource === 'pods') return decideForPod(store, node, attributes);
  const fields = group === '' ? REFERENCES.get(resource) : undefined;
  if (fields === undefined) return decideForCustomKind(store, node, attributes);
  if (verb !== 'get') return refuse('can only read namespaced object of this type');
  if (node !== '' && isReferenced(store, node, { namespace, name, fields })) return undefined;
  return refuse(noRelationship(node));
}

const noRelationship = (node: string) => `no relationship found between node '${node}' and this object`;

const isList = (verb: string) => verb === 'list' || verb === 'watch';

/** Returns the version that the request is about: writes build on writes in flight. */
function findObject(store: Store, verb: string, collection: string, id: string): Entry | undefined {
  return verb === 'get' ? store.get(collection, id) : store.latest(collection, id);
}

function decideForPod(
  store: Store,
  node: string,
  { verb, namespace, name, fieldSelector = '' }: ResourceRequestAttributes,
): AuthorizationDecision | undefined {
  if (isList(verb)) {
    if (node !== '' && selectsField(fieldSelector, 'spec.nodeName', node)) return undefined;
    return refuse('can only list/watch pods with spec.nodeName field selector');
  }
  if (name === '') return undefined;
  // Without the pod, the answer is that it does not exist.
  const entry = findObject(store, verb, 'pods', `${namespace}/${name}`);
  if (node !== '' && (entry === undefined || nodeNameOf(entry) === node)) return undefined;
  return refuse(noRelationship(node));
}

function decideForCustomKind(
  store: Store,
  node: string,
  { verb, group, resource, namespace, name, labelSelector = '' }: ResourceRequestAttributes,
): AuthorizationDecision | undefined {
  if (!isList(verb) && name === '') return undefined;
  const collection = `${resource}.${group}`;
  const places = group === '' ? undefined : nodePlacesOf(store.get(DEFINITIONS, collection));
  if (places === undefined) return undefined;
  if (places.companion !== '') {
    if (isList(verb)) return refuse('can only read namespaced object of this type');
    const isOwn = node !== '' && isBoundCompanion(store, node, places.companion, `${namespace}/${name}`);
    return isOwn ? undefined : refuse(noRelationship(node));
  }
  const { label } = places;
  if (isList(verb)) {
    if (node !== '' && selectsLabel(labelSelector, label, node)) return undefined;
    return refuse(`can only list/watch ${resource} with the label selector ${label}=${node}`);
  }
  const entry = findObject(store, verb, collection, `${namespace}/${name}`);
  if (node !== '' && (entry === undefined || isBoundObject(store, node, entry, places))) return undefined;
  return refuse(noRelationship(node));
}

export const DEFINITIONS = 'customresourcedefinitions.apiextensions.k8s.io';

/** The places in the objects of a kind that name their nodes. */
interface NodePlaces {
  readonly label: string;
  readonly fields: readonly (readonly string[])[];
  /** The collection whose objects of the same name are bound to nodes instead; '' if there is none. */
  readonly companion: string;
}

const known = new WeakMap<Entry, NodePlaces>();

/** Returns where the objects of a kind name their nodes; undefined if nodes may read all of them. */
export function nodePlacesOf(definition: Entry | undefined): NodePlaces | undefined {
  if (definition === undefined) return undefined;
  let places = known.get(definition);
  if (places === undefined) {
    const annotations = decodeStored(definition.bytes).metadata.annotations ?? {};
    const fields = (annotations[NODE_FIELDS_ANNOTATION] ?? '').split(',').filter((field) => field !== '');
    places = {
      label: annotations[NODE_LABEL_ANNOTATION] ?? '',
      fields: fields.map((field) => field.split('.')),
      companion: annotations[NODE_COMPANION_ANNOTATION] ?? '',
    };
    known.set(definition, places);
  }
  return places.label === '' && places.companion === '' ? undefined : places;
}

function isBoundCompanion(store: Store, node: string, collection: string, id: string): boolean {
  const entry = store.get(collection, id);
  const places = nodePlacesOf(store.get(DEFINITIONS, collection));
  return entry !== undefined && places !== undefined && isBoundObject(store, node, entry, places);
}

export function isBoundObject(store: Store, node: string, entry: Entry, { label, fields }: NodePlaces): boolean {
  const object = decodeStored(entry.bytes);
  const { labels, uid = '', namespace = '' } = object.metadata;
  if (labels?.[label] === node || fields.some((path) => valueAt(object, path) === node)) return true;
  return ownsPodOf(store, node, { namespace, uid });
}

function valueAt(value: unknown, path: readonly string[]): unknown {
  return path.reduce((inner: unknown, field) => (isRecord(inner) ? inner[field] : undefined), value);
}

/** Reports whether the object with this uid owns a pod of the node. */
export function ownsPodOf(store: Store, node: string, { namespace, uid }: { namespace: string; uid: string }): boolean {
  if (uid === '') return false;
  const [quotedUid, quotedNode] = [JSON.stringify(uid), JSON.stringify(node)];
  return store.list('pods', { prefix: `${namespace}/` }).entries.some((entry) => {
    if (!entry.bytes.includes(quotedUid) || !entry.bytes.includes(quotedNode)) return false;
    const { metadata } = decodeStored(entry.bytes);
    return nodeNameOf(entry) === node && (metadata.ownerReferences ?? []).some((owner) => owner.uid === uid);
  });
}

function nodeNameOf({ bytes }: Entry): string {
  const { spec } = decodeStored(bytes) as { spec?: { nodeName?: string } };
  return spec?.nodeName ?? '';
}

function selectsField(text: string, field: string, value: string): boolean {
  return parsed(() => parseFieldSelector(text)).some(
    (term) => term.field === field && term.operator === '=' && term.value === value,
  );
}

function selectsLabel(text: string, key: string, value: string): boolean {
  return parsed(() => parseLabelSelector(text)).some(
    (term) => term.key === key && (term.operator === '=' || term.operator === 'in') && deepEqual(term.values, [value]),
  );
}

/** Returns no requirements for an invalid selector, which the handler reports. */
function parsed<T>(parse: () => readonly T[]): readonly T[] {
  try {
    return parse();
  } catch {
    return [];
  }
}

const refuse = (reason: string): AuthorizationDecision => ({ allowed: false, reason });

interface ObjectName {
  readonly namespace: string;
  readonly name: string;
  readonly fields: Readonly<Record<string, string>>;
}

function isReferenced(store: Store, node: string, { namespace, name, fields }: ObjectName): boolean {
  const { entries } = store.list('pods', { prefix: `${namespace}/` });
  const [quotedName, quotedNode] = [JSON.stringify(name), JSON.stringify(node)];
  return entries.some(({ bytes }) => {
    // There may be thousands of pods: most are excluded without parsing.
    if (!bytes.includes(quotedName) || !bytes.includes(quotedNode)) return false;
    const { spec } = decodeStored(bytes) as { spec?: { nodeName?: string } };
    return spec?.nodeName === node && findReference(spec, name, fields);
  });
}

export function findReference(value: unknown, name: string, fields: ObjectName['fields'], depth = MAX_DEPTH): boolean {
  if (depth === 0) return false;
  if (Array.isArray(value)) return value.some((item) => findReference(item, name, fields, depth - 1));
  if (!isRecord(value)) return false;
  return Object.entries(value).some(([key, inner]) => {
    const field = Object.hasOwn(fields, key) ? fields[key] : undefined;
    if (field !== undefined && refersTo(inner, field, name)) return true;
    return findReference(inner, name, fields, depth - 1);
  });
}

/** Projected volumes reference a Secret by `name`. */
function refersTo(value: unknown, field: string, name: string): boolean {
  if (Array.isArray(value)) return value.some((item) => refersTo(item, field, name));
  return isRecord(value) && (value[field] === name || value['name'] === name);
}
