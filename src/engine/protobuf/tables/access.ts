/** rbac, authentication and authorization. Notation: message-table.ts. */
export const ACCESS_TABLE = `
Role
  1 metadata? ObjectMeta; 2 rules PolicyRule[]
PolicyRule
  1 verbs string[]; 2 apiGroups? string[]; 3 resources? string[]; 4 resourceNames? string[];
  5 nonResourceURLs? string[]
RoleBinding
  1 metadata? ObjectMeta; 2 subjects? Subject[]; 3 roleRef RoleRef
Subject
  1 kind string; 2 apiGroup? string; 3 name string; 4 namespace? string
RoleRef
  1 apiGroup string; 2 kind string; 3 name string
ClusterRole
  1 metadata? ObjectMeta; 2 rules PolicyRule[]; 3 aggregationRule? *AggregationRule
AggregationRule
  1 clusterRoleSelectors? LabelSelector[]
ClusterRoleBinding
  1 metadata? ObjectMeta; 2 subjects? Subject[]; 3 roleRef RoleRef
TokenRequest
  1 metadata? ObjectMeta; 2 spec TokenRequestSpec; 3 status? TokenRequestStatus
TokenRequestSpec
  1 audiences string[]; 4 expirationSeconds *int64; 3 boundObjectRef *BoundObjectReference
BoundObjectReference
  1 kind? string; 2 apiVersion? string; 3 name? string; 4 uid? string
TokenRequestStatus
  1 token string; 2 expirationTimestamp Time
TokenReview
  1 metadata? ObjectMeta; 2 spec TokenReviewSpec; 3 status? TokenReviewStatus
TokenReviewSpec
  1 token? string; 2 audiences? string[]
TokenReviewStatus
  1 authenticated? bool; 2 user? UserInfo; 4 audiences? string[]; 3 error? string
UserInfo
  1 username? string; 2 uid? string; 3 groups? string[]; 4 extra? ExtraValue{}
SelfSubjectReview
  1 metadata? ObjectMeta; 2 status? SelfSubjectReviewStatus
SelfSubjectReviewStatus
  1 userInfo? UserInfo
SubjectAccessReview
  1 metadata? ObjectMeta; 2 spec SubjectAccessReviewSpec; 3 status? SubjectAccessReviewStatus
SubjectAccessReviewSpec
  1 resourceAttributes? *ResourceAttributes; 2 nonResourceAttributes? *NonResourceAttributes; 3 user? string;
  4 groups? string[]; 5 extra? ExtraValue{}; 6 uid? string
ResourceAttributes
  1 namespace? string; 2 verb? string; 3 group? string; 4 version? string; 5 resource? string; 6 subresource? string;
  7 name? string; 8 fieldSelector? *FieldSelectorAttributes; 9 labelSelector? *LabelSelectorAttributes
FieldSelectorAttributes
  1 rawSelector? string; 2 requirements? FieldSelectorRequirement[]
LabelSelectorAttributes
  1 rawSelector? string; 2 requirements? LabelSelectorRequirement[]
NonResourceAttributes
  1 path? string; 2 verb? string
SubjectAccessReviewStatus
  1 allowed bool; 4 denied? bool; 2 reason? string; 3 evaluationError? string
SelfSubjectAccessReview
  1 metadata? ObjectMeta; 2 spec SelfSubjectAccessReviewSpec; 3 status? SubjectAccessReviewStatus
SelfSubjectAccessReviewSpec
  1 resourceAttributes? *ResourceAttributes; 2 nonResourceAttributes? *NonResourceAttributes
LocalSubjectAccessReview
  1 metadata? ObjectMeta; 2 spec SubjectAccessReviewSpec; 3 status? SubjectAccessReviewStatus
SelfSubjectRulesReview
  1 metadata? ObjectMeta; 2 spec SelfSubjectRulesReviewSpec; 3 status? SubjectRulesReviewStatus
SelfSubjectRulesReviewSpec
  1 namespace? string
SubjectRulesReviewStatus
  1 resourceRules ResourceRule[]; 2 nonResourceRules NonResourceRule[]; 3 incomplete bool; 4 evaluationError? string
ResourceRule
  1 verbs string[]; 2 apiGroups? string[]; 3 resources? string[]; 4 resourceNames? string[]
NonResourceRule
  1 verbs string[]; 2 nonResourceURLs? string[]
`;
