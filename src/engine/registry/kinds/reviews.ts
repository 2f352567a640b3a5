/**
 * Review kinds: creating one asks a question, and its status contains the answer. They are not stored;
 * handlers/review.ts answers them.
 */
import { defineKind } from '#engine/registry/kinds/define-kind.ts';
import { selectorRequirement } from '#engine/registry/kinds/shared/label-selector.ts';
import type { Resource } from '#engine/registry/resource.ts';
import { bool, list, map, obj, str } from '#kube/schema-dsl.ts';

const AUTHENTICATION = 'authentication.k8s.io';
const AUTHORIZATION = 'authorization.k8s.io';

const extra = map(list(str()));

const userInfo = obj({ username: str(), uid: str(), groups: list(str(), { atomic: true }), extra });

const selector = obj({ rawSelector: str(), requirements: list(selectorRequirement, { atomic: true }) });

const resourceAttributes = obj({
  namespace: str(),
  verb: str(),
  group: str(),
  version: str(),
  resource: str(),
  subresource: str(),
  name: str(),
  fieldSelector: selector,
  labelSelector: selector,
});

const nonResourceAttributes = obj({ path: str(), verb: str() });

const accessStatus = obj(
  { allowed: bool(), denied: bool(), reason: str(), evaluationError: str() },
  { required: ['allowed'] },
);

const rulesStatus = obj(
  {
    resourceRules: list(
      obj(
        {
          verbs: list(str(), { atomic: true }),
          apiGroups: list(str(), { atomic: true }),
          resources: list(str(), { atomic: true }),
          resourceNames: list(str(), { atomic: true }),
        },
        { required: ['verbs'] },
      ),
      { atomic: true },
    ),
    nonResourceRules: list(
      obj(
        { verbs: list(str(), { atomic: true }), nonResourceURLs: list(str(), { atomic: true }) },
        { required: ['verbs'] },
      ),
      { atomic: true },
    ),
    incomplete: bool(),
    evaluationError: str(),
  },
  { required: ['resourceRules', 'nonResourceRules', 'incomplete'] },
);

const attributes = { resourceAttributes, nonResourceAttributes };

const subjectAccess = obj(
  {
    spec: obj({ ...attributes, user: str(), groups: list(str(), { atomic: true }), uid: str(), extra }),
    status: accessStatus,
  },
  { required: ['spec'] },
);

const common = { namespaced: false, verbs: ['create'], columns: [], isReview: true } as const;

export const reviewResources: readonly Resource[] = [
  defineKind({
    ...common,
    group: AUTHENTICATION,
    kind: 'SelfSubjectReview',
    plural: 'selfsubjectreviews',
    schema: obj({ status: obj({ userInfo }) }),
  }),
  defineKind({
    ...common,
    group: AUTHENTICATION,
    kind: 'TokenReview',
    plural: 'tokenreviews',
    schema: obj(
      {
        spec: obj({ token: str(), audiences: list(str(), { atomic: true }) }),
        status: obj({
          authenticated: bool(),
          user: userInfo,
          audiences: list(str(), { atomic: true }),
          error: str(),
        }),
      },
      { required: ['spec'] },
    ),
  }),
  defineKind({
    ...common,
    group: AUTHORIZATION,
    kind: 'SelfSubjectAccessReview',
    plural: 'selfsubjectaccessreviews',
    schema: obj({ spec: obj(attributes), status: accessStatus }, { required: ['spec'] }),
  }),
  defineKind({
    ...common,
    group: AUTHORIZATION,
    kind: 'SelfSubjectRulesReview',
    plural: 'selfsubjectrulesreviews',
    schema: obj({ spec: obj({ namespace: str() }), status: rulesStatus }, { required: ['spec'] }),
  }),
  defineKind({
    ...common,
    group: AUTHORIZATION,
    kind: 'SubjectAccessReview',
    plural: 'subjectaccessreviews',
    schema: subjectAccess,
  }),
  defineKind({
    ...common,
    group: AUTHORIZATION,
    kind: 'LocalSubjectAccessReview',
    plural: 'localsubjectaccessreviews',
    namespaced: true,
    schema: subjectAccess,
  }),
];
