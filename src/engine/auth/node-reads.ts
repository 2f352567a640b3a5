/**
 * A node reads the Secrets and ConfigMaps that pods bound to it name, and no others: Kubernetes' node authorizer, as far as
 * these two are concerned. Their role is one for all nodes; this is what tells them apart.
 */
import type { Attributes, Decision } from '#engine/auth/authorize.ts';
import { NODE_USER_PREFIX, NODES } from '#engine/auth/groups.ts';
import type { RbacAuthorizer } from '#engine/auth/rbac/rbac-authorizer.ts';
import { decodeStored } from '#engine/codec.ts';
import type { UserInfo } from '#engine/request.ts';
import type { Store } from '#engine/store/store.ts';
import { isRecord } from '#kube/meta.ts';

/** By resource: fields of a pod that name one, whatever is around them. */
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

/** The same authorizer, which refuses nodes what is not theirs to read. */
export function withNodeReads(inner: RbacAuthorizer, store: Store): RbacAuthorizer {
  return {
    authorize: (user, attributes) => refused(user, attributes, store) ?? inner.authorize(user, attributes),
    rulesFor: (user, namespace) => inner.rulesFor(user, namespace),
    heldRules: (user, namespace) => inner.heldRules(user, namespace),
    rulesOfRole: (ref, namespace) => inner.rulesOfRole(ref, namespace),
    stop: () => inner.stop(),
  };
}

/** Undefined where it is not about a node that reads one of them. */
function refused(user: UserInfo, attributes: Attributes, store: Store): Decision | undefined {
  if ('path' in attributes || !user.groups.includes(NODES)) return undefined;
  const { verb, group, resource, namespace, name } = attributes;
  const fields = group === '' ? REFERENCES.get(resource) : undefined;
  if (fields === undefined) return undefined;
  const node = user.name.startsWith(NODE_USER_PREFIX) ? user.name.slice(NODE_USER_PREFIX.length) : '';
  if (verb !== 'get') return no('can only read namespaced object of this type');
  if (node !== '' && isNamed(store, node, { namespace, name, fields })) return undefined;
  return no(`no relationship found between node '${node}' and this object`);
}

const no = (reason: string): Decision => ({ allowed: false, reason });

interface Named {
  readonly namespace: string;
  readonly name: string;
  readonly fields: Readonly<Record<string, string>>;
}

function isNamed(store: Store, node: string, { namespace, name, fields }: Named): boolean {
  const { entries } = store.list('pods', { prefix: `${namespace}/` });
  const [quotedName, quotedNode] = [JSON.stringify(name), JSON.stringify(node)];
  return entries.some(({ bytes }) => {
    // There may be thousands of them: most are out without being read.
    if (!bytes.includes(quotedName) || !bytes.includes(quotedNode)) return false;
    const { spec } = decodeStored(bytes) as { spec?: { nodeName?: string } };
    return spec?.nodeName === node && names(spec, name, fields, MAX_DEPTH);
  });
}

function names(value: unknown, name: string, fields: Named['fields'], depth: number): boolean {
  if (depth === 0) return false;
  if (Array.isArray(value)) return value.some((item) => names(item, name, fields, depth - 1));
  if (!isRecord(value)) return false;
  return Object.entries(value).some(([key, inner]) => {
    const field = Object.hasOwn(fields, key) ? fields[key] : undefined;
    if (field !== undefined && refersTo(inner, field, name)) return true;
    return names(inner, name, fields, depth - 1);
  });
}

/** Within projected volumes a Secret is named by `name`, too. */
function refersTo(value: unknown, field: string, name: string): boolean {
  if (Array.isArray(value)) return value.some((item) => refersTo(item, field, name));
  return isRecord(value) && (value[field] === name || value['name'] === name);
}
