/**
 * Who may do what. RBAC comes with a later issue and will be another Authorizer; until then members of
 * system:masters may do everything, authenticated users may read discovery, and everybody health and version.
 *
 * The router decides whether a request is about a resource or a plain path; paths are compared as they are, so they
 * must be the very ones that are routed.
 */
import { AUTHENTICATED, MASTERS } from '#engine/auth/groups.ts';
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

export interface Authorizer {
  authorize(user: UserInfo, attributes: Attributes): Decision;
}

/** Exact paths, and with a trailing `*` all that begin so. */
const PUBLIC_PATHS = ['/healthz', '/healthz/*', '/livez', '/livez/*', '/readyz', '/readyz/*', '/version', '/version/'];
const DISCOVERY_PATHS = ['/api', '/api/*', '/apis', '/apis/*', '/openapi', '/openapi/*'];

const ALLOWED: Decision = { allowed: true };
const REFUSED: Decision = { allowed: false };

const isPublic = pathMatcher(PUBLIC_PATHS);
const isDiscovery = pathMatcher(DISCOVERY_PATHS);

export const builtInAuthorizer: Authorizer = {
  authorize(user, attributes) {
    if (user.groups.includes(MASTERS)) return ALLOWED;
    if (isAboutOneself(attributes) && user.groups.includes(AUTHENTICATED)) return ALLOWED;
    if (!('path' in attributes) || attributes.verb !== 'get') return REFUSED;
    if (isPublic(attributes.path)) return ALLOWED;
    return user.groups.includes(AUTHENTICATED) && isDiscovery(attributes.path) ? ALLOWED : REFUSED;
  },
};

/** Who one is and what one may do, everybody may ask. */
function isAboutOneself(attributes: Attributes): boolean {
  if ('path' in attributes || attributes.verb !== 'create') return false;
  const { group, resource } = attributes;
  return (
    (group === 'authorization.k8s.io' && resource === 'selfsubjectaccessreviews') ||
    (group === 'authentication.k8s.io' && resource === 'selfsubjectreviews')
  );
}

function pathMatcher(patterns: readonly string[]): (path: string) => boolean {
  const exact = new Set(patterns.filter((pattern) => !pattern.endsWith('*')));
  const prefixes = patterns.filter((pattern) => pattern.endsWith('*')).map((pattern) => pattern.slice(0, -1));
  return (path) => exact.has(path) || prefixes.some((prefix) => path.startsWith(prefix));
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
