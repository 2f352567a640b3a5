/**
 * Who may do what: the question, the answer, and the words of a refusal. auth/rbac/ answers by the roles in the store.
 *
 * The router decides whether a request is about a resource or a plain path; paths are compared as they are, so they
 * must be the very ones that are routed.
 */
import type { UserInfo } from '#engine/request.ts';
import { forbidden, forbiddenPath } from '#kube/api-error.ts';
import type { ApiError } from '#kube/api-error.ts';

export interface ResourceAttributes {
  /** get, list, watch, create, update, patch, delete, deletecollection. */
  readonly verb: string;
  readonly group: string;
  readonly version: string;
  readonly resource: string;
  /** Each of the following is '' where the request has none. */
  readonly subresource: string;
  readonly namespace: string;
  readonly name: string;
}

export interface PathAttributes {
  /** The HTTP method in lower case. */
  readonly verb: string;
  readonly path: string;
}

export type Attributes = ResourceAttributes | PathAttributes;

export interface Decision {
  readonly allowed: boolean;
  readonly reason?: string;
}

/** What somebody may do in a namespace, as a SelfSubjectRulesReview answers it. */
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
  /** There may be more. */
  readonly incomplete: boolean;
  readonly evaluationError?: string;
}

/** Synchronous, because a read is answered at once. */
export interface Authorizer {
  authorize(user: UserInfo, attributes: Attributes): Decision;
  /** Absent where rules cannot be listed. */
  rulesFor?(user: UserInfo, namespace: string): RuleList;
}

/** The 403 for a refused request, in Kubernetes' words; `reason` is what the authorizer gave, if anything. */
export function refusal(user: UserInfo, attributes: Attributes, reason = ''): ApiError {
  if ('path' in attributes) {
    return forbiddenPath(inert(user.name), inert(attributes.verb), inert(attributes.path));
  }
  const { verb, group, resource, subresource, namespace, name } = attributes;
  const target = subresource === '' ? resource : `${resource}/${subresource}`;
  const scope = namespace === '' ? 'at the cluster scope' : `in the namespace ${quoted(namespace)}`;
  const why = `User ${quoted(user.name)} cannot ${verb} resource ${quoted(target)} in API group ${quoted(group)} ${scope}`;
  const because = reason === '' ? '' : `: ${reason}`;
  return forbidden({ group, plural: resource }, name, `${inert(why)}${because}`);
}

const quoted = (text: string) => JSON.stringify(text);

/** Like kube-apiserver, so that no browser takes the message for HTML. */
function inert(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}
