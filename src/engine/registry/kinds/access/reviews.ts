/**
 * Review kinds: creating one asks a question, and its status contains the answer. They are not stored;
 * handlers/review.ts answers them.
 */
import { apiType, optional, pointer, required } from '#engine/registry/kinds/api-type.ts';
import { defineKind } from '#engine/registry/kinds/define-kind.ts';
import { fieldSelectorRequirement, labelSelectorRequirement } from '#engine/registry/kinds/meta/label-selector.ts';
import type { Resource } from '#engine/registry/resource.ts';
import { bool, list, map, str } from '#kube/schema-dsl.ts';

const AUTHENTICATION = 'authentication.k8s.io';
const AUTHORIZATION = 'authorization.k8s.io';

const extra = map(list(str()));

const userInfo = apiType('authentication.v1.UserInfo', 'Information about a user.', {
  username: optional(1, str(), 'Name of the user.'),
  uid: optional(2, str(), 'UID of the user.'),
  groups: optional(3, list(str(), { atomic: true }), 'Groups of the user.'),
  extra: optional(4, extra, 'Additional information from the authenticator.', { message: 'ExtraValue' }),
});

const rawSelector = optional(1, str(), 'Selector as it is in the query.');
const REQUIREMENTS = 'Parsed requirements of the selector.';

const fieldSelector = apiType('authorization.v1.FieldSelectorAttributes', 'A field selector of a request.', {
  rawSelector,
  requirements: optional(2, list(fieldSelectorRequirement, { atomic: true }), REQUIREMENTS),
});

const labelSelector = apiType('authorization.v1.LabelSelectorAttributes', 'A label selector of a request.', {
  rawSelector,
  requirements: optional(2, list(labelSelectorRequirement, { atomic: true }), REQUIREMENTS),
});

const resourceAttributes = apiType('authorization.v1.ResourceAttributes', 'A request for a resource.', {
  namespace: optional(
    1,
    str(),
    'Namespace of the request. Empty means all namespaces, or none for cluster-scoped resources.',
  ),
  verb: optional(2, str(), 'Verb: get, list, watch, create, update, patch or delete. * means all verbs.'),
  group: optional(3, str(), 'API group of the resource. * means all groups.'),
  version: optional(4, str(), 'API version of the resource. * means all versions.'),
  resource: optional(5, str(), 'Resource type. * means all resources.'),
  subresource: optional(6, str(), 'Subresource type.'),
  name: optional(7, str(), 'Name of the object. Empty means all objects.'),
  fieldSelector: pointer(8, fieldSelector, 'Field selector of the request.'),
  labelSelector: pointer(9, labelSelector, 'Label selector of the request.'),
});

const nonResourceAttributes = apiType(
  'authorization.v1.NonResourceAttributes',
  'A request for a path that is not a resource.',
  {
    path: optional(1, str(), 'URL path of the request.'),
    verb: optional(2, str(), 'HTTP method of the request, in lower case.'),
  },
);

const accessStatus = apiType('authorization.v1.SubjectAccessReviewStatus', 'The result of an access check.', {
  allowed: required(1, bool(), 'Whether the action is allowed.'),
  denied: optional(4, bool(), 'Whether the action is denied, so that no other authorizer may allow it.'),
  reason: optional(2, str(), 'Why the request was allowed or denied.'),
  evaluationError: optional(3, str(), 'Error during the check. The result may be valid despite it.'),
});

const resourceRule = apiType('authorization.v1.ResourceRule', 'Actions allowed on resources.', {
  verbs: required(1, list(str(), { atomic: true }), 'Verbs. * matches all verbs.'),
  apiGroups: optional(2, list(str(), { atomic: true }), 'API groups of the resources. * matches all groups.'),
  resources: optional(3, list(str(), { atomic: true }), 'Resources. * matches all resources.'),
  resourceNames: optional(4, list(str(), { atomic: true }), 'Names of objects. An empty list matches all objects.'),
});

const nonResourceRule = apiType(
  'authorization.v1.NonResourceRule',
  'Actions allowed on paths that are not resources.',
  {
    verbs: required(1, list(str(), { atomic: true }), 'HTTP methods in lower case. * matches all methods.'),
    nonResourceURLs: optional(2, list(str(), { atomic: true }), 'URL paths. * matches all paths.'),
  },
);

const rulesStatus = apiType('authorization.v1.SubjectRulesReviewStatus', 'The actions that a user can perform.', {
  resourceRules: required(1, list(resourceRule, { atomic: true }), 'Actions allowed on resources.'),
  nonResourceRules: required(
    2,
    list(nonResourceRule, { atomic: true }),
    'Actions allowed on paths that are not resources.',
  ),
  incomplete: required(3, bool(), 'Whether the lists may be incomplete.'),
  evaluationError: optional(4, str(), 'Error during the evaluation, if any. The rules may then be incomplete.'),
});

const selfSubjectReviewStatus = apiType(
  'authentication.v1.SelfSubjectReviewStatus',
  'Attributes of the current user.',
  { userInfo: optional(1, userInfo, 'User attributes of the current request.') },
);

const tokenReviewSpec = apiType('authentication.v1.TokenReviewSpec', 'A token to authenticate.', {
  token: optional(1, str(), 'Bearer token.'),
  audiences: optional(
    2,
    list(str(), { atomic: true }),
    'Audiences, one of which the token must be intended for. Defaults to the API server.',
  ),
});

const tokenReviewStatus = apiType('authentication.v1.TokenReviewStatus', 'The result of an authentication.', {
  authenticated: optional(1, bool(), 'Whether the token belongs to a known user.'),
  user: optional(2, userInfo, 'User of the token.'),
  audiences: optional(4, list(str(), { atomic: true }), 'Audiences that both the request and the token name.'),
  error: optional(3, str(), 'Why the token could not be checked.'),
});

const selfSubjectRulesReviewSpec = apiType(
  'authorization.v1.SelfSubjectRulesReviewSpec',
  'The namespace to evaluate.',
  { namespace: optional(1, str(), 'Name of the namespace.') },
);

const attributes = {
  resourceAttributes: pointer(1, resourceAttributes, 'Request for a resource.'),
  nonResourceAttributes: pointer(2, nonResourceAttributes, 'Request for a path that is not a resource.'),
};

const selfSubjectAccessReviewSpec = apiType(
  'authorization.v1.SelfSubjectAccessReviewSpec',
  'A request to evaluate. Exactly one member must be set.',
  attributes,
);

const subjectAccessReviewSpec = apiType(
  'authorization.v1.SubjectAccessReviewSpec',
  'A request to evaluate and the user who makes it.',
  {
    ...attributes,
    user: optional(3, str(), 'Name of the user.'),
    groups: optional(4, list(str(), { atomic: true }), 'Groups of the user.'),
    extra: optional(5, extra, 'Additional information about the user.', { message: 'ExtraValue' }),
    uid: optional(6, str(), 'UID of the user.'),
  },
);

/** The fields of a review of another user's access. */
const subjectAccessReview = {
  spec: required(2, subjectAccessReviewSpec, 'Request to evaluate.'),
  status: optional(3, accessStatus, 'Whether the request is allowed. Filled in by the server.'),
};

const common = { namespaced: false, verbs: ['create'], columns: [], isReview: true } as const;

export const reviewResources: readonly Resource[] = [
  defineKind({
    ...common,
    group: AUTHENTICATION,
    kind: 'SelfSubjectReview',
    plural: 'selfsubjectreviews',
    schema: apiType(
      'authentication.v1.SelfSubjectReview',
      'The user information of the current request, as the API server sees it.',
      {
        status: optional(2, selfSubjectReviewStatus, 'User attributes. Filled in by the server.'),
      },
    ),
  }),
  defineKind({
    ...common,
    group: AUTHENTICATION,
    kind: 'TokenReview',
    plural: 'tokenreviews',
    schema: apiType('authentication.v1.TokenReview', 'Attempts to authenticate a token to a known user.', {
      spec: required(2, tokenReviewSpec, 'Token to review.'),
      status: optional(3, tokenReviewStatus, 'Result of the review. Filled in by the server.'),
    }),
  }),
  defineKind({
    ...common,
    group: AUTHORIZATION,
    kind: 'SelfSubjectAccessReview',
    plural: 'selfsubjectaccessreviews',
    schema: apiType(
      'authorization.v1.SelfSubjectAccessReview',
      'Checks whether the current user can perform an action.',
      {
        spec: required(2, selfSubjectAccessReviewSpec, 'Request to evaluate.'),
        status: optional(3, accessStatus, 'Whether the request is allowed. Filled in by the server.'),
      },
    ),
  }),
  defineKind({
    ...common,
    group: AUTHORIZATION,
    kind: 'SelfSubjectRulesReview',
    plural: 'selfsubjectrulesreviews',
    schema: apiType(
      'authorization.v1.SelfSubjectRulesReview',
      'Lists the actions that the current user can perform in a namespace.',
      {
        spec: required(2, selfSubjectRulesReviewSpec, 'Namespace to evaluate.'),
        status: optional(3, rulesStatus, 'Allowed actions. Filled in by the server.'),
      },
    ),
  }),
  defineKind({
    ...common,
    group: AUTHORIZATION,
    kind: 'SubjectAccessReview',
    plural: 'subjectaccessreviews',
    schema: apiType(
      'authorization.v1.SubjectAccessReview',
      'Checks whether a user or group can perform an action.',
      subjectAccessReview,
    ),
  }),
  defineKind({
    ...common,
    group: AUTHORIZATION,
    kind: 'LocalSubjectAccessReview',
    plural: 'localsubjectaccessreviews',
    namespaced: true,
    schema: apiType(
      'authorization.v1.LocalSubjectAccessReview',
      'Checks whether a user or group can perform an action in one namespace.',
      subjectAccessReview,
    ),
  }),
];
