/** Admission policies, webhook configurations and API services. Notation: message-table.ts. */
export const ADMISSION_TABLE = `
ValidatingAdmissionPolicy
  1 metadata? ObjectMeta; 2 spec? ValidatingAdmissionPolicySpec; 3 status? ValidatingAdmissionPolicyStatus
ValidatingAdmissionPolicySpec
  1 paramKind? *ParamKind; 2 matchConstraints? *MatchResources; 3 validations? Validation[]; 4 failurePolicy? *string;
  5 auditAnnotations? AuditAnnotation[]; 6 matchConditions? MatchCondition[]; 7 variables? Variable[]
ParamKind
  1 apiVersion? string; 2 kind? string
MatchResources
  1 namespaceSelector? *LabelSelector; 2 objectSelector? *LabelSelector; 3 resourceRules? NamedRuleWithOperations[];
  4 excludeResourceRules? NamedRuleWithOperations[]; 7 matchPolicy? *string
NamedRuleWithOperations
  1 resourceNames? string[]; 2 ...RuleWithOperations
RuleWithOperations
  1 operations? string[]; 2 ...Rule
Rule
  1 apiGroups? string[]; 2 apiVersions? string[]; 3 resources? string[]; 4 scope? *string
Validation
  1 expression string; 2 message? string; 3 reason? *string; 4 messageExpression? string
AuditAnnotation
  1 key string; 2 valueExpression string
MatchCondition
  1 name string; 2 expression string
Variable
  1 name string; 2 expression string
ValidatingAdmissionPolicyStatus
  1 observedGeneration? int64; 2 typeChecking? *TypeChecking; 3 conditions? Condition[]
TypeChecking
  1 expressionWarnings? ExpressionWarning[]
ExpressionWarning
  2 fieldRef string; 3 warning string
ValidatingAdmissionPolicyBinding
  1 metadata? ObjectMeta; 2 spec? ValidatingAdmissionPolicyBindingSpec
ValidatingAdmissionPolicyBindingSpec
  1 policyName? string; 2 paramRef? *ParamRef; 3 matchResources? *MatchResources; 4 validationActions? string[]
ParamRef
  1 name? string; 2 namespace? string; 3 selector? *LabelSelector; 4 parameterNotFoundAction? *string
ValidatingWebhookConfiguration
  1 metadata? ObjectMeta; 2 webhooks? ValidatingWebhook[]
ValidatingWebhook
  1 name string; 2 clientConfig WebhookClientConfig; 3 rules? RuleWithOperations[]; 4 failurePolicy? *string;
  9 matchPolicy? *string; 5 namespaceSelector? *LabelSelector; 10 objectSelector? *LabelSelector;
  6 sideEffects *string; 7 timeoutSeconds? *int32; 8 admissionReviewVersions string[];
  11 matchConditions? MatchCondition[]
WebhookClientConfig
  3 url? *string; 1 service? *ServiceReference; 2 caBundle? bytes
ServiceReference
  1 namespace string; 2 name string; 3 path? *string; 4 port? *int32
MutatingWebhookConfiguration
  1 metadata? ObjectMeta; 2 webhooks? MutatingWebhook[]
MutatingWebhook
  1 name string; 2 clientConfig WebhookClientConfig; 3 rules? RuleWithOperations[]; 4 failurePolicy? *string;
  9 matchPolicy? *string; 5 namespaceSelector? *LabelSelector; 11 objectSelector? *LabelSelector;
  6 sideEffects *string; 7 timeoutSeconds? *int32; 8 admissionReviewVersions string[]; 10 reinvocationPolicy? *string;
  12 matchConditions? MatchCondition[]
APIService
  1 metadata? ObjectMeta; 2 spec? APIServiceSpec; 3 status? APIServiceStatus
APIServiceSpec
  1 service? *apiregistration.ServiceReference; 2 group? string; 3 version? string; 4 insecureSkipTLSVerify? bool;
  5 caBundle? bytes; 7 groupPriorityMinimum int32; 8 versionPriority int32
apiregistration.ServiceReference
  1 namespace? string; 2 name? string; 3 port? *int32
APIServiceStatus
  1 conditions? APIServiceCondition[]
APIServiceCondition
  1 type string; 2 status string; 3 lastTransitionTime? Time; 4 reason? string; 5 message? string
`;
