/** Documentation of webhook configurations and admission policies. */
import type { PackageDocs, TypeDoc } from '#engine/openapi/type-docs/type-doc.ts';

const webhook: TypeDoc = {
  admissionReviewVersions: 'Versions of AdmissionReview that the webhook accepts, in order of preference.',
  clientConfig: ['How to call the webhook.', 'WebhookClientConfig'],
  failurePolicy: 'How failures of the call are handled: Ignore or Fail.',
  matchConditions: ['CEL expressions that must all be true for the webhook to be called.', 'MatchCondition'],
  matchPolicy: 'Whether rules also match requests to equivalent versions of a resource: Exact or Equivalent.',
  name: 'Fully qualified name of the webhook.',
  namespaceSelector: ['Selects the namespaces whose requests go to the webhook.', 'meta.LabelSelector'],
  objectSelector: ['Selects the objects whose requests go to the webhook.', 'meta.LabelSelector'],
  rules: ['Operations and resources that the webhook is called for.', 'RuleWithOperations'],
  sideEffects: 'Side effects of the webhook: None or NoneOnDryRun.',
  timeoutSeconds: 'Timeout of a call in seconds.',
};

const rule: TypeDoc = {
  apiGroups: 'API groups of the resources. * matches all groups.',
  apiVersions: 'API versions of the resources. * matches all versions.',
  operations: 'Operations to match: CREATE, UPDATE, DELETE, CONNECT. * matches all operations.',
  resources: 'Resources to match. pods/* matches all subresources of pods, */* all resources and subresources.',
  scope: 'Scope of the resources: Cluster, Namespaced or * for both.',
};

export const admissionDocs: PackageDocs = {
  MutatingWebhookConfiguration: {
    '': 'Webhooks that may change or reject requests before objects are stored.',
    webhooks: ['Webhooks to call, with the operations that each is called for.', 'MutatingWebhook'],
  },
  ValidatingWebhookConfiguration: {
    '': 'Webhooks that may reject requests before objects are stored, without changing them.',
    webhooks: ['Webhooks to call, with the operations that each is called for.', 'ValidatingWebhook'],
  },
  MutatingWebhook: {
    '': 'A webhook that may change or reject requests.',
    ...webhook,
    reinvocationPolicy:
      'Whether the webhook is called again after later plugins changed the object: Never or IfNeeded.',
  },
  ValidatingWebhook: { '': 'A webhook that may reject requests.', ...webhook },
  WebhookClientConfig: {
    '': 'How to connect to a webhook: a service of the cluster or a URL.',
    caBundle: "PEM encoded CA bundle that verifies the webhook's server certificate.",
    service: ['Service that serves the webhook.', 'ServiceReference'],
    url: 'URL of the webhook.',
  },
  ServiceReference: {
    '': 'A reference to a service.',
    name: 'Name of the service.',
    namespace: 'Namespace of the service.',
    path: 'URL path of requests to the service.',
    port: 'Port of the service. Defaults to 443.',
  },
  MatchCondition: {
    '': 'A condition that must be true for a request to be processed.',
    expression: 'CEL expression that evaluates to a bool.',
    name: 'Name of the condition.',
  },
  RuleWithOperations: { '': 'Operations on resources.', ...rule },
  NamedRuleWithOperations: {
    '': 'Operations on resources, optionally limited to some object names.',
    ...rule,
    resourceNames: 'Names of objects. An empty list matches all objects.',
  },
  ValidatingAdmissionPolicy: {
    '': 'An admission policy that accepts or rejects objects without changing them. Takes effect through bindings.',
    spec: ['Desired behavior of the policy.', 'ValidatingAdmissionPolicySpec'],
    status: [
      'Status of the policy, including warnings about its expressions. Populated by the system. Read-only.',
      'ValidatingAdmissionPolicyStatus',
    ],
  },
  ValidatingAdmissionPolicySpec: {
    '': 'Desired behavior of a ValidatingAdmissionPolicy.',
    auditAnnotations: ['Annotations added to the audit event of the request.', 'AuditAnnotation'],
    failurePolicy: 'How errors of the policy are handled: Ignore or Fail.',
    matchConditions: ['CEL expressions that must all be true for the policy to be evaluated.', 'MatchCondition'],
    matchConstraints: ['Operations and resources that the policy validates.', 'MatchResources'],
    paramKind: ['Kind of the resources that parameterize the policy.', 'ParamKind'],
    validations: ['CEL expressions that the request must satisfy.', 'Validation'],
    variables: ['Named expressions that other expressions of the policy can use.', 'Variable'],
  },
  AuditAnnotation: {
    '': 'An annotation added to the audit event of the request.',
    key: 'Key of the annotation.',
    valueExpression: 'CEL expression that evaluates to the value as a string, or to null to omit the annotation.',
  },
  MatchResources: {
    '': 'Selects requests by operation, resource, namespace and labels.',
    excludeResourceRules: ['Operations and resources that are not matched.', 'NamedRuleWithOperations'],
    matchPolicy: 'Whether rules also match requests to equivalent versions of a resource: Exact or Equivalent.',
    namespaceSelector: ['Selects the namespaces of the objects.', 'meta.LabelSelector'],
    objectSelector: ['Selects objects by their labels.', 'meta.LabelSelector'],
    resourceRules: ['Operations and resources that are matched.', 'NamedRuleWithOperations'],
  },
  ParamKind: {
    '': 'The API version and kind of parameter resources.',
    apiVersion: 'API version of the kind.',
    kind: 'Name of the kind.',
  },
  Validation: {
    '': 'A CEL expression that decides whether a request is allowed.',
    expression: 'CEL expression that must evaluate to true.',
    message: 'Message returned when the validation fails.',
    messageExpression: 'CEL expression that evaluates to the message. Takes precedence over message.',
    reason: 'Machine-readable reason of the failure: Unauthorized, Forbidden, Invalid or RequestEntityTooLarge.',
  },
  Variable: {
    '': 'A named expression that other expressions can use.',
    expression: 'CEL expression that evaluates to the value of the variable.',
    name: 'Name of the variable. Expressions refer to it as variables.<name>.',
  },
  ValidatingAdmissionPolicyStatus: {
    '': 'Status of a ValidatingAdmissionPolicy.',
    conditions: ['Latest observations of the state of the policy.', 'meta.Condition'],
    observedGeneration: 'Generation of the policy that the status describes.',
    typeChecking: ['Results of type checking the expressions.', 'TypeChecking'],
  },
  TypeChecking: {
    '': 'Results of type checking the expressions of a policy.',
    expressionWarnings: ['Warnings about expressions.', 'ExpressionWarning'],
  },
  ExpressionWarning: {
    '': 'A warning about one expression.',
    fieldRef: 'Path of the field that holds the expression.',
    warning: 'Text of the warning, with the type errors that were found.',
  },
  ValidatingAdmissionPolicyBinding: {
    '': 'Binds a ValidatingAdmissionPolicy to resources and parameters.',
    spec: ['Desired behavior of the binding.', 'ValidatingAdmissionPolicyBindingSpec'],
  },
  ValidatingAdmissionPolicyBindingSpec: {
    '': 'Desired behavior of a ValidatingAdmissionPolicyBinding.',
    matchResources: ['Further limits the resources that the policy validates.', 'MatchResources'],
    paramRef: ['Parameter resources of the policy.', 'ParamRef'],
    policyName: 'Name of the ValidatingAdmissionPolicy.',
    validationActions: 'How failed validations are enforced: Deny, Warn, Audit.',
  },
  ParamRef: {
    '': 'A reference to the parameter resources of a policy.',
    name: 'Name of one parameter resource.',
    namespace: "Namespace of the parameter resources. Defaults to the request's namespace for namespaced kinds.",
    parameterNotFoundAction: 'Whether requests pass if no parameter resource exists: Allow or Deny.',
    selector: ['Selects several parameter resources by their labels.', 'meta.LabelSelector'],
  },
};
