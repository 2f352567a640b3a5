/**
 * Limits nodes to the Secrets and ConfigMaps that their pods reference: Kubernetes' node authorizer for these two
 * kinds. All nodes share one role, so this separates them.
 */
import type { Attributes, AuthorizationDecision } from '#engine/auth/authorize.ts';
import { NODE_USER_PREFIX, NODES } from '#engine/auth/groups.ts';
import type { RbacAuthorizer } from '#engine/auth/rbac/rbac-authorizer.ts';
import { decodeStored } from '#engine/encoding/stored-object.ts';
import type { UserInfo } from '#engine/request/request.ts';
import type { Store } from '#engine/store/store.ts';
import { isRecord } from '#kube/meta.ts';

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

/** Wraps an authorizer and refuses nodes to read objects that their pods do not reference. */
export function withNodeReads(inner: RbacAuthorizer, store: Store): RbacAuthorizer {
  return {
    authorize: (user, attributes) => decideNodeRead(user, attributes, store) ?? inner.authorize(user, attributes),
    rulesFor: (user, namespace) => inner.rulesFor(user, namespace),
    heldRules: (user, namespace) => inner.heldRules(user, namespace),
    rulesOfRole: (ref, namespace) => inner.rulesOfRole(ref, namespace),
    stop: () => inner.stop(),
  };
}

/** Returns undefined unless a node reads one of these resources. */
function decideNodeRead(user: UserInfo, attributes: Attributes, store: Store): AuthorizationDecision | undefined {
  if ('path' in attributes || !user.groups.includes(NODES)) return undefined;
  const { verb, group, resource, namespace, name } = attributes;
  const fields = group === '' ? REFERENCES.get(resource) : undefined;
  if (fields === undefined) return undefined;
  const node = user.name.startsWith(NODE_USER_PREFIX) ? user.name.slice(NODE_USER_PREFIX.length) : '';
  if (verb !== 'get') return refuse('can only read namespaced object of this type');
  if (node !== '' && isReferenced(store, node, { namespace, name, fields })) return undefined;
  return refuse(`no relationship found between node '${node}' and this object`);
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
    return spec?.nodeName === node && findReference(spec, name, fields, MAX_DEPTH);
  });
}

function findReference(value: unknown, name: string, fields: ObjectName['fields'], depth: number): boolean {
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
