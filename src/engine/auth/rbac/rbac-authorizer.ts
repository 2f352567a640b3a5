/**
 * Authorizes requests by the roles and bindings in the store (RBAC). An in-memory index follows the store write by write, so
 * that a role applies as soon as it is durable and a request needs only a few lookups.
 *
 * Cluster-wide bindings come first, then those of the request's namespace. There are no deny rules: a request that no rule
 * allows is refused.
 */
import type { Attributes, Authorizer, AuthorizationDecision, RuleList } from '#engine/auth/authorize.ts';
import { MASTERS } from '#engine/auth/groups.ts';
import { CompiledRole } from '#engine/auth/rbac/compiled-role.ts';
import { type Grant, GrantIndex, roleId } from '#engine/auth/rbac/grant-index.ts';
import { missingRolesText } from '#engine/auth/rbac/missing-roles.ts';
import {
  type RbacBinding,
  RBAC_CLUSTER_ROLE_BINDINGS,
  RBAC_CLUSTER_ROLES,
  type RbacRule,
  RBAC_ROLE_BINDINGS,
  RBAC_ROLES,
  type RbacRole,
  type RoleRef,
} from '#engine/auth/rbac/policy.ts';
import { decodeStored } from '#engine/encoding/stored-object.ts';
import type { UserInfo } from '#engine/request/request.ts';
import type { Entry, Store } from '#engine/store/store.ts';
import { groupResource, type ResourceType } from '#kube/meta.ts';
import { silentLog, type Log } from '#lib/log.ts';

/** The rules that a user holds, and the bound roles that do not exist. */
interface HeldRules {
  readonly rules: readonly RbacRule[];
  readonly missing: readonly RoleRef[];
}

export interface RbacAuthorizer extends Authorizer {
  rulesFor(user: UserInfo, namespace: string): RuleList;
  /** In a namespace, or with '' in the whole cluster. */
  heldRules(user: UserInfo, namespace: string): HeldRules;
  /** Returns the rules of the role that a binding in `namespace` refers to, or undefined if it does not exist. */
  rulesOfRole(ref: RoleRef, namespace: string): readonly RbacRule[] | undefined;
  stop(): void;
}

/** Up to date when this returns. */
export function rbacAuthorizer(store: Store, log: Log = silentLog): RbacAuthorizer {
  return new StoreAuthorizer(store, log);
}

const MASTER: AuthorizationDecision = { allowed: true };
const REFUSED: AuthorizationDecision = { allowed: false };

class StoreAuthorizer implements RbacAuthorizer {
  readonly #roles = new Map<string, CompiledRole>();
  readonly #clusterWide = new GrantIndex();
  readonly #byNamespace = new Map<string, GrantIndex>();
  /** Functions that remove a binding from its index, by id. */
  readonly #bound = new Map<string, () => void>();
  readonly #stops: readonly (() => void)[];

  constructor(store: Store, log: Log) {
    const takeRole = catchErrors(log, (id, entry) => this.#updateRole(id, entry));
    const takeBinding = catchErrors(log, (id, entry) => this.#updateBinding(id, entry));
    this.#stops = [
      follow(store, RBAC_ROLES, takeRole),
      follow(store, RBAC_CLUSTER_ROLES, takeRole),
      follow(store, RBAC_ROLE_BINDINGS, takeBinding),
      follow(store, RBAC_CLUSTER_ROLE_BINDINGS, takeBinding),
    ];
  }

  #updateRole(id: string, entry: Entry | undefined): void {
    this.#roles.delete(id);
    if (entry !== undefined) this.#roles.set(id, new CompiledRole((decodeStored(entry.bytes) as RbacRole).rules ?? []));
  }

  #updateBinding(id: string, entry: Entry | undefined): void {
    this.#bound.get(id)?.();
    this.#bound.delete(id);
    if (entry === undefined) return;
    const binding = decodeStored(entry.bytes) as RbacBinding;
    const { namespace = '' } = binding.metadata;
    const index = this.#indexOf(namespace);
    const remove = index.add(binding);
    this.#bound.set(id, () => {
      remove();
      if (namespace !== '' && index.isEmpty) this.#byNamespace.delete(namespace);
    });
  }

  #indexOf(namespace: string): GrantIndex {
    if (namespace === '') return this.#clusterWide;
    let index = this.#byNamespace.get(namespace);
    if (index === undefined) this.#byNamespace.set(namespace, (index = new GrantIndex()));
    return index;
  }

  authorize(user: UserInfo, attributes: Attributes): AuthorizationDecision {
    if (user.groups.includes(MASTERS)) return MASTER;
    const allows = this.#matcherFor(attributes);
    const namespace = 'path' in attributes ? '' : attributes.namespace;
    return this.#find(user, namespace, allows)?.decision ?? this.#refuse(user, namespace);
  }

  #matcherFor(attributes: Attributes): (grant: Grant) => boolean {
    if ('path' in attributes) {
      const { verb, path } = attributes;
      return (grant) => this.#roles.get(grant.roleId)?.allowsPath(verb, path) === true;
    }
    const { resource, subresource } = attributes;
    const target = subresource === '' ? resource : `${resource}/${subresource}`;
    return (grant) => this.#roles.get(grant.roleId)?.allows(target, attributes) === true;
  }

  #find(user: UserInfo, namespace: string, wanted: (grant: Grant) => boolean): Grant | undefined {
    const found = this.#clusterWide.find(user, wanted);
    if (found !== undefined || namespace === '') return found;
    return this.#byNamespace.get(namespace)?.find(user, wanted);
  }

  #refuse(user: UserInfo, namespace: string): AuthorizationDecision {
    const missing = this.#missingRoles(user, namespace);
    return missing === undefined
      ? REFUSED
      : { allowed: false, reason: `RBAC: ${missingRolesText(missing, 'singular')}` };
  }

  /** Returns undefined if none is missing, which is almost always so: a refusal costs no more than a permission. */
  #missingRoles(user: UserInfo, namespace: string): readonly RoleRef[] | undefined {
    let missing: RoleRef[] | undefined;
    this.#find(user, namespace, ({ roleRef, roleId: id }) => {
      if (!this.#roles.has(id)) (missing ??= []).push(roleRef);
      return false;
    });
    return missing;
  }

  heldRules(user: UserInfo, namespace: string): HeldRules {
    const rules: RbacRule[] = [];
    const missing: RoleRef[] = [];
    this.#find(user, namespace, ({ roleRef, roleId: id }) => {
      const role = this.#roles.get(id);
      if (role === undefined) missing.push(roleRef);
      else for (const rule of role.rules) rules.push(rule);
      return false;
    });
    return { rules, missing };
  }

  rulesFor(user: UserInfo, namespace: string): RuleList {
    const { rules, missing } = this.heldRules(user, namespace);
    const evaluationError = missing.length === 0 ? undefined : missingRolesText(missing, 'singular');
    return listRules(rules, evaluationError);
  }

  rulesOfRole(ref: RoleRef, namespace: string): readonly RbacRule[] | undefined {
    return this.#roles.get(roleId(ref, namespace))?.rules;
  }

  stop(): void {
    for (const stop of this.#stops) stop();
  }
}

type EntryHandler = (id: string, entry: Entry | undefined) => void;

/** An invalid object grants nothing; it must not break the store or the start. */
function catchErrors(log: Log, take: EntryHandler): EntryHandler {
  return (id, entry) => {
    try {
      take(id, entry);
    } catch (error) {
      log.error({ err: error, object: id }, 'Cannot read a role or binding; it grants nothing');
    }
  };
}

/** Passes every current object of the kind to `take`, and each change from then on. */
function follow(store: Store, type: ResourceType, take: EntryHandler): () => void {
  const collection = groupResource(type);
  for (const entry of store.list(collection).entries) take(entry.id, entry);
  return store.watch({ collection, since: store.revision }, (events) => {
    for (const { type: change, entry } of events) take(entry.id, change === 'delete' ? undefined : entry);
  });
}

/**
 * Formats rules for a SelfSubjectRulesReview (`kubectl auth can-i --list`): by resources and by paths, without
 * duplicates.
 */
function listRules(rules: readonly RbacRule[], evaluationError: string | undefined): RuleList {
  const resourceRules = new Map<string, RuleList['resourceRules'][number]>();
  const nonResourceRules = new Map<string, RuleList['nonResourceRules'][number]>();
  for (const { verbs, apiGroups, resources, resourceNames, nonResourceURLs } of rules) {
    if (resources?.length) keep(resourceRules, { verbs, apiGroups, resources, resourceNames });
    if (nonResourceURLs?.length) keep(nonResourceRules, { verbs, nonResourceURLs });
  }
  return {
    resourceRules: [...resourceRules.values()],
    nonResourceRules: [...nonResourceRules.values()],
    incomplete: false,
    ...(evaluationError === undefined ? {} : { evaluationError }),
  };
}

function keep<T>(rules: Map<string, T>, rule: T): void {
  const key = JSON.stringify(rule);
  if (!rules.has(key)) rules.set(key, rule);
}
