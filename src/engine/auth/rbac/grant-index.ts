/** Indexes bindings by the users and groups that they name. There is one index for each scope. */
import type { AuthorizationDecision } from '#engine/auth/authorize.ts';
import type { RbacBinding, RoleRef, RbacSubject } from '#engine/auth/rbac/policy.ts';
import { serviceAccountName } from '#engine/auth/service-accounts/user.ts';
import type { UserInfo } from '#engine/request/request.ts';

/** The grant of a binding to one subject. */
export interface Grant {
  readonly roleRef: RoleRef;
  /** The role's id in the store. */
  readonly roleId: string;
  /** The decision if the role allows a request. Created once, because it is returned for every such request. */
  readonly decision: AuthorizationDecision;
}

export class GrantIndex {
  readonly #byUser = new Map<string, Set<Grant>>();
  readonly #byGroup = new Map<string, Set<Grant>>();

  get isEmpty(): boolean {
    return this.#byUser.size === 0 && this.#byGroup.size === 0;
  }

  /** Adds the grants of a binding. Returns a function that removes them. */
  add(binding: RbacBinding): () => void {
    const removals = (binding.subjects ?? []).map((subject) => this.#addSubject(binding, subject));
    return () => {
      for (const remove of removals) remove();
    };
  }

  #addSubject({ kind, metadata, roleRef }: RbacBinding, subject: RbacSubject): () => void {
    const { name = '', namespace = '' } = metadata;
    const home = subject.namespace || namespace;
    const key = subject.kind === 'ServiceAccount' ? serviceAccountName(home, subject.name) : subject.name;
    // A service account without a namespace and a subject of an unknown kind match no user.
    if (!SUBJECT_KINDS.has(subject.kind) || (subject.kind === 'ServiceAccount' && home === '')) return () => {};
    const shown = namespace === '' ? name : `${name}/${namespace}`;
    const who = subject.kind === 'ServiceAccount' ? `${subject.name}/${home}` : subject.name;
    const source = `${kind} ${quoted(shown)} of ${roleRef.kind} ${quoted(roleRef.name)} to ${subject.kind} ${quoted(who)}`;
    const decision = { allowed: true, reason: `RBAC: allowed by ${source}` };
    const grant: Grant = { roleRef, roleId: roleId(roleRef, namespace), decision };
    const index = subject.kind === 'Group' ? this.#byGroup : this.#byUser;
    const grants = index.get(key) ?? new Set();
    index.set(key, grants.add(grant));
    return () => {
      grants.delete(grant);
      if (grants.size === 0) index.delete(key);
    };
  }

  /** Returns the first of the user's grants that satisfies `wanted`. */
  find(user: UserInfo, wanted: (grant: Grant) => boolean): Grant | undefined {
    const found = firstOf(this.#byUser.get(user.name), wanted);
    if (found !== undefined) return found;
    for (const group of user.groups) {
      const ofGroup = firstOf(this.#byGroup.get(group), wanted);
      if (ofGroup !== undefined) return ofGroup;
    }
    return undefined;
  }
}

/**
 * Returns the store's id of the role that a binding in the namespace refers to; ids of Roles and ClusterRoles differ.
 */
export function roleId({ kind, name }: RoleRef, namespace: string): string {
  return kind === 'Role' ? `${namespace}/${name}` : name;
}

const SUBJECT_KINDS: ReadonlySet<string> = new Set(['User', 'Group', 'ServiceAccount']);

function firstOf(grants: ReadonlySet<Grant> | undefined, wanted: (grant: Grant) => boolean): Grant | undefined {
  if (grants !== undefined) for (const grant of grants) if (wanted(grant)) return grant;
  return undefined;
}

const quoted = (text: string) => JSON.stringify(text);
