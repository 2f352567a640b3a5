/** Roles and bindings for tests: short builders, a memory store, and requests written as sentences. */
import type { Attributes } from '#engine/auth/authorize.ts';
import { rbacAccountSubject, rbacGroupSubject, rbacUserSubject } from '#engine/auth/rbac/defaults/build-policy.ts';
import {
  type RbacBinding,
  RBAC_CLUSTER_ROLE_BINDINGS,
  RBAC_CLUSTER_ROLES,
  type RbacClusterRole,
  type RbacRule,
  RBAC_GROUP,
  RBAC_ROLE_BINDINGS,
  RBAC_ROLES,
  type RbacSubject,
} from '#engine/auth/rbac/policy.ts';
import { encodeStored } from '#engine/encoding/stored-object.ts';
import { openMemoryStore } from '#engine/store/testing/memory-store.ts';
import type { Store } from '#engine/store/store.ts';
import { apiVersionOf, groupResource, type KubeObject, type ResourceType } from '#kube/meta.ts';

const TYPES = [RBAC_ROLES, RBAC_CLUSTER_ROLES, RBAC_ROLE_BINDINGS, RBAC_CLUSTER_ROLE_BINDINGS];

/** `place` is the name, or namespace/name. */
function object(namespaced: ResourceType, global: ResourceType, place: string): KubeObject {
  const [name = '', namespace] = place.split('/').toReversed();
  const type = namespace === undefined ? global : namespaced;
  return { apiVersion: apiVersionOf(type), kind: type.kind, metadata: { name, ...(namespace && { namespace }) } };
}

/** Returns a Role if `place` has a namespace, else a ClusterRole. */
export function aRole(place: string, ...rules: RbacRule[]): RbacClusterRole {
  return { ...object(RBAC_ROLES, RBAC_CLUSTER_ROLES, place), rules };
}

/** `role` is `Role/x` or `ClusterRole/x`; subjects are `User x`, `Group x`, `ServiceAccount ns/x`. */
export function aBinding(place: string, role: string, ...subjects: string[]): RbacBinding {
  const [kind = '', name = ''] = role.split('/');
  return {
    ...object(RBAC_ROLE_BINDINGS, RBAC_CLUSTER_ROLE_BINDINGS, place),
    roleRef: { apiGroup: RBAC_GROUP, kind, name },
    subjects: subjects.map(subjectOf),
  };
}

function subjectOf(text: string): RbacSubject {
  const [kind = '', who = ''] = text.split(' ');
  const [name = '', namespace = ''] = who.split('/').toReversed();
  if (kind === 'User') return rbacUserSubject(name);
  if (kind === 'Group') return rbacGroupSubject(name);
  return namespace === '' ? { kind, name } : rbacAccountSubject(namespace, name);
}

export async function storeOf(...objects: KubeObject[]): Promise<Store> {
  const store = await openMemoryStore();
  for (const one of objects) await putPolicy(store, one);
  return store;
}

export async function putPolicy(store: Store, written: KubeObject): Promise<void> {
  const { collection, id } = placeOf(written);
  const expected = store.latest(collection, id)?.revision ?? 0;
  const encode = (revision: number) => encodeStored(structuredClone(written), revision);
  await store.put({ collection, id, expected, encode });
}

export async function removePolicy(store: Store, removed: KubeObject): Promise<void> {
  const { collection, id } = placeOf(removed);
  const expected = store.latest(collection, id)?.revision ?? 0;
  await store.delete({
    collection,
    id,
    expected,
    encode: (revision) => encodeStored(structuredClone(removed), revision),
  });
}

function placeOf({ kind, metadata }: KubeObject): { collection: string; id: string } {
  const type = TYPES.find((one) => one.kind === kind)!;
  const { name = '', namespace } = metadata;
  return { collection: groupResource(type), id: namespace === undefined ? name : `${namespace}/${name}` };
}

/** Parses `get apps:deployments/scale in ns named x`, `get /metrics`. */
export function parseAttributes(sentence: string): Attributes {
  const [verb = '', target = '', ...rest] = sentence.split(' ');
  if (target.startsWith('/')) return { verb, path: target };
  const { in: namespace = '', named: name = '' } = Object.fromEntries(pairs(rest)) as Record<string, string>;
  const [plural = '', groupName = ''] = target.split(':').toReversed();
  const [resource = '', subresource = ''] = plural.split('/');
  return { verb, group: groupName, version: 'v1', resource, subresource, namespace, name };
}

function pairs(words: string[]): [string, string][] {
  return words.flatMap((word, i) => (i % 2 === 0 ? [[word, words[i + 1] ?? ''] as [string, string]] : []));
}
