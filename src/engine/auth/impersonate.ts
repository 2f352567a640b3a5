/**
 * Impersonation (`kubectl --as`): each Impersonate-* header requires the verb `impersonate` on what it names.
 * Afterwards the request belongs to that user, without any trace of the real user.
 */
import { type Authorizer, authorizationError, type ResourceRequestAttributes } from '#engine/auth/authorize.ts';
import { ANONYMOUS_USER, AUTHENTICATED, UNAUTHENTICATED } from '#engine/auth/groups.ts';
import { SERVICE_ACCOUNTS_GROUP } from '#engine/auth/service-accounts/user.ts';
import { withUser, type ApiRequest, type UserInfo } from '#engine/request/request.ts';
import { ApiError } from '#kube/api-error.ts';
import { nameErrors } from '#kube/names.ts';

const USER = 'impersonate-user';
const GROUP = 'impersonate-group';
const UID = 'impersonate-uid';
const EXTRA_PREFIX = 'impersonate-extra-';
const ACCOUNT_PREFIX = 'system:serviceaccount:';

const AUTHENTICATION = 'authentication.k8s.io';

/** Returns the same request if it has no impersonation headers. Throws ApiError. */
export function applyImpersonation(request: ApiRequest, authorizer: Authorizer): ApiRequest {
  const claim = claimOf(request);
  if (claim === undefined) return request;
  for (const attributes of targetsOf(claim)) {
    const { allowed, reason } = authorizer.authorize(request.user, attributes);
    if (!allowed) throw authorizationError(request.user, attributes, reason);
  }
  return withUser(request, { user: userOf(claim), impersonator: request.user, keeps: (header) => !isClaim(header) });
}

interface Claim {
  readonly user: string;
  readonly uid: string;
  readonly groups: readonly string[];
  readonly extra: ReadonlyMap<string, readonly string[]>;
}

/**
 * Reads the impersonation headers. A claim without a user is refused: a proxy that lost the header must not act with
 * its own permissions.
 */
function claimOf(request: ApiRequest): Claim | undefined {
  if (request.header === undefined) return undefined;
  const user = request.header(USER) ?? '';
  const group = request.header(GROUP);
  const uid = request.header(UID) ?? '';
  const extra = extraOf(request);
  if (user === '' && group === undefined && uid === '' && extra.size === 0) return undefined;
  const claim = { user, uid, groups: valuesOf(group), extra };
  if (user === '') throw missingUserError(request.path, claim);
  return claim;
}

const NO_EXTRA: Claim['extra'] = new Map();

/** Repeated headers arrive as one, with the values separated by a comma and a space. */
function valuesOf(header: string | undefined): readonly string[] {
  return header === undefined || header === '' ? [] : header.split(', ');
}

function extraOf(request: ApiRequest): Claim['extra'] {
  const names = request.headerNames?.().filter((name) => name.startsWith(EXTRA_PREFIX)) ?? [];
  if (names.length === 0) return NO_EXTRA;
  // An empty value is a value, and must be authorized like any other.
  return new Map(
    names.map((name) => [unescapeKey(name.slice(EXTRA_PREFIX.length)), (request.header?.(name) ?? '').split(', ')]),
  );
}

/** Decodes a key, which may have characters that header names cannot have. */
function unescapeKey(key: string): string {
  try {
    return decodeURIComponent(key);
  } catch {
    return key;
  }
}

/** Returns the attributes to authorize, in Kubernetes' order. */
function targetsOf({ user, uid, groups, extra }: Claim): ResourceRequestAttributes[] {
  const account = splitAccount(user);
  return [
    account === undefined ? target('', 'users', user) : target('', 'serviceaccounts', account.name, account),
    ...groups.map((group) => target('', 'groups', group)),
    ...[...extra].flatMap(([key, values]) =>
      values.map((value) => target(AUTHENTICATION, 'userextras', value, { subresource: key })),
    ),
    ...(uid === '' ? [] : [target(AUTHENTICATION, 'uids', uid)]),
  ];
}

function target(
  group: string,
  resource: string,
  name: string,
  { namespace = '', subresource = '' }: { namespace?: string; subresource?: string } = {},
): ResourceRequestAttributes {
  const version = group === '' ? '' : 'v1';
  return { verb: 'impersonate', group, version, resource, subresource, namespace, name };
}

function userOf({ user, uid, groups, extra }: Claim): UserInfo {
  const account = splitAccount(user);
  const own = groups.length === 0 && account !== undefined ? accountGroups(account.namespace) : groups;
  return {
    name: user,
    groups: completeGroups(user, own),
    ...(uid === '' ? {} : { uid }),
    ...(extra.size === 0 ? {} : { extra: Object.fromEntries(extra) }),
  };
}

/** Determines system:authenticated from the groups, or else from the name. */
function completeGroups(user: string, groups: readonly string[]): readonly string[] {
  if (groups.includes(UNAUTHENTICATED)) return groups;
  if (user === ANONYMOUS_USER.name) return [...groups, UNAUTHENTICATED];
  return groups.includes(AUTHENTICATED) ? groups : [...groups, AUTHENTICATED];
}

const accountGroups = (namespace: string) => [SERVICE_ACCOUNTS_GROUP, `${SERVICE_ACCOUNTS_GROUP}:${namespace}`];

/** Returns undefined for a user that is not a service account. */
function splitAccount(user: string): { namespace: string; name: string } | undefined {
  if (!user.startsWith(ACCOUNT_PREFIX)) return undefined;
  const [namespace = '', name = '', ...rest] = user.slice(ACCOUNT_PREFIX.length).split(':');
  const valid = nameErrors('label', namespace).length === 0 && nameErrors('subdomain', name).length === 0;
  return valid && rest.length === 0 ? { namespace, name } : undefined;
}

const isClaim = (header: string) => header.startsWith('impersonate-');

/** Kubernetes prints its object references here, with a blank for each missing field. */
function missingUserError(path: string, { groups, extra, uid }: Claim): ApiError {
  const shown = [
    ...groups.map((group) => `{Group  ${group}    }`),
    ...[...extra].flatMap(([key, values]) =>
      values.map((value) => `{UserExtra  ${value}  ${AUTHENTICATION}/v1  ${key}}`),
    ),
    ...(uid === '' ? [] : [`{UID  ${uid}  ${AUTHENTICATION}/v1  }`]),
  ];
  const why = `requested [${shown.join(' ')}] without impersonating a user`;
  return new ApiError(500, 'InternalError', `Internal Server Error: ${JSON.stringify(path)}: ${why}`);
}
