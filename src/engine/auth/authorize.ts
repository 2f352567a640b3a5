/**
 * The types of authorization, and the error for a refusal. auth/rbac/ decides by the roles in the store.
 *
 * The router decides whether a request is for a resource or a plain path. Paths are compared literally, so they must be
 * the same that are routed.
 */
import type { UserInfo } from '#engine/request/request.ts';
import { forbidden, forbiddenPath } from '#kube/api-error.ts';
import type { ApiError } from '#kube/api-error.ts';

export interface ResourceRequestAttributes {
  /** get, list, watch, create, update, patch, delete, deletecollection. */
  readonly verb: string;
  readonly group: string;
  readonly version: string;
  readonly resource: string;
  /** This and the following fields are '' if the request has none. */
  readonly subresource: string;
  readonly namespace: string;
  readonly name: string;
  /** The selectors of a list or watch, as sent. */
  readonly labelSelector?: string;
  readonly fieldSelector?: string;
}

interface PathRequestAttributes {
  /** The HTTP method in lower case. */
  readonly verb: string;
  readonly path: string;
}

export type Attributes = ResourceRequestAttributes | PathRequestAttributes;

export interface AuthorizationDecision {
  readonly allowed: boolean;
  readonly reason?: string;
}

/** The permissions of a user in a namespace, as in a SelfSubjectRulesReview. */
export interface RuleList {
  readonly resourceRules: readonly {
    readonly verbs: readonly string[];
    readonly apiGroups?: readonly string[] | undefined;
    readonly resources?: readonly string[] | undefined;
    readonly resourceNames?: readonly string[] | undefined;
  }[];
  readonly nonResourceRules: readonly {
    readonly verbs: readonly string[];
    readonly nonResourceURLs?: readonly string[] | undefined;
  }[];
  /** True if the list may be incomplete. */
  readonly incomplete: boolean;
  readonly evaluationError?: string;
}

/** Synchronous, because reads are answered synchronously. */
export interface Authorizer {
  authorize(user: UserInfo, attributes: Attributes): AuthorizationDecision;
  /** Absent if rules cannot be listed. */
  rulesFor?(user: UserInfo, namespace: string): RuleList;
}

/** Builds the 403 for a refused request, with Kubernetes' message; `reason` is that of the authorizer. */
export function authorizationError(user: UserInfo, attributes: Attributes, reason = ''): ApiError {
  if ('path' in attributes) {
    return forbiddenPath(escapeHtml(user.name), escapeHtml(attributes.verb), escapeHtml(attributes.path));
  }
  const { verb, group, resource, subresource, namespace, name } = attributes;
  const target = subresource === '' ? resource : `${resource}/${subresource}`;
  const scope = namespace === '' ? 'at the cluster scope' : `in the namespace ${quoted(namespace)}`;
  const why = `User ${quoted(user.name)} cannot ${verb} resource ${quoted(target)} in API group ${quoted(group)} ${scope}`;
  const because = reason === '' ? '' : `: ${reason}`;
  return forbidden({ group, plural: resource }, name, `${escapeHtml(why)}${because}`);
}

const quoted = (text: string) => JSON.stringify(text);

/** Escapes HTML like kube-apiserver, so that no browser renders the message. */
function escapeHtml(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}
