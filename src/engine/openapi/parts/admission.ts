/** The words for webhooks and admission policies. */
import type { Part, Parts } from '#engine/openapi/parts/part.ts';

const webhook: Part = {
  admissionReviewVersions: 'Versions of AdmissionReview that it knows.',
  clientConfig: ['Where it is.', 'WebhookClientConfig'],
  failurePolicy: 'What its failure means for the request: Ignore or Fail.',
  matchConditions: ['Expressions that must be true for it to be asked.', 'MatchCondition'],
  matchPolicy: 'Whether other versions of the same kind count: Exact or Equivalent.',
  name: 'Its full name.',
  namespaceSelector: ['The namespaces that it is asked about.', 'meta.LabelSelector'],
  objectSelector: ['The objects that it is asked about.', 'meta.LabelSelector'],
  rules: ['The operations that it is asked about.', 'RuleWithOperations'],
  sideEffects: 'Whether it does more than answer: None or NoneOnDryRun.',
  timeoutSeconds: 'How long an answer may take.',
};

const rule: Part = {
  apiGroups: 'Groups; * for all.',
  apiVersions: 'Versions; * for all.',
  operations: 'CREATE, UPDATE, DELETE, CONNECT; * for all.',
  resources: 'Resources; pods/* and */* stand for subresources.',
  scope: 'Cluster, Namespaced or *.',
};

export const admissionParts: Parts = {
  MutatingWebhookConfiguration: {
    '': 'Webhooks that may change what is written.',
    webhooks: ['The webhooks.', 'MutatingWebhook'],
  },
  ValidatingWebhookConfiguration: {
    '': 'Webhooks that may refuse what is written.',
    webhooks: ['The webhooks.', 'ValidatingWebhook'],
  },
  MutatingWebhook: {
    '': 'Is asked before something is written, and may change it.',
    ...webhook,
    reinvocationPolicy: 'Whether it is asked again when others changed the object: Never or IfNeeded.',
  },
  ValidatingWebhook: { '': 'Is asked before something is written, and may refuse it.', ...webhook },
  WebhookClientConfig: {
    '': 'Where a webhook is: a service or an address.',
    caBundle: 'Certificates that its own is checked with.',
    service: ['A service of the cluster.', 'ServiceReference'],
    url: 'Its address.',
  },
  ServiceReference: {
    '': 'A service of the cluster.',
    name: 'Its name.',
    namespace: 'Its namespace.',
    path: 'The path of the requests.',
    port: 'Its port.',
  },
  MatchCondition: { '': 'An expression that must be true.', expression: 'In CEL.', name: 'Its name.' },
  RuleWithOperations: { '': 'Operations on resources.', ...rule },
  NamedRuleWithOperations: {
    '': 'Operations on resources.',
    ...rule,
    resourceNames: 'Names of objects; empty for all.',
  },
  ValidatingAdmissionPolicy: {
    '': 'Refuses what its expressions say, where it is bound.',
    spec: ['What is checked.', 'ValidatingAdmissionPolicySpec'],
    status: ['What was found in its expressions; written by the system.', 'ValidatingAdmissionPolicyStatus'],
  },
  ValidatingAdmissionPolicySpec: {
    '': 'What a policy checks.',
    auditAnnotations: ['What is noted in the audit log.', 'AuditAnnotation'],
    failurePolicy: 'What a failing expression means for the request: Ignore or Fail.',
    matchConditions: ['Expressions that must be true for it to count.', 'MatchCondition'],
    matchConstraints: ['The operations that it is about.', 'MatchResources'],
    paramKind: ['The kind of its parameters.', 'ParamKind'],
    validations: ['What must be true.', 'Validation'],
    variables: ['Names for parts of expressions.', 'Variable'],
  },
  AuditAnnotation: {
    '': 'What is noted in the audit log.',
    key: 'Under which key.',
    valueExpression: 'An expression in CEL for the text; null for nothing.',
  },
  MatchResources: {
    '': 'Operations on objects.',
    excludeResourceRules: ['Operations that it is not about.', 'NamedRuleWithOperations'],
    matchPolicy: 'Whether other versions of the same kind count: Exact or Equivalent.',
    namespaceSelector: ['The namespaces of the objects.', 'meta.LabelSelector'],
    objectSelector: ['Labels of the objects.', 'meta.LabelSelector'],
    resourceRules: ['Operations that it is about.', 'NamedRuleWithOperations'],
  },
  ParamKind: { '': 'A kind of parameters.', apiVersion: 'Its API version.', kind: 'Its name.' },
  Validation: {
    '': 'What must be true.',
    expression: 'In CEL.',
    message: 'What is said when it is not.',
    messageExpression: 'An expression in CEL for the message.',
    reason: 'The reason of the refusal: Unauthorized, Forbidden, Invalid or RequestEntityTooLarge.',
  },
  Variable: { '': 'A name for a part of expressions.', expression: 'In CEL.', name: 'Its name.' },
  ValidatingAdmissionPolicyStatus: {
    '': 'What was found in the expressions of a policy.',
    conditions: ['The state of the policy in several aspects.', 'meta.Condition'],
    observedGeneration: 'The generation that was looked at.',
    typeChecking: ['Mistakes in types.', 'TypeChecking'],
  },
  TypeChecking: { '': 'Mistakes in types.', expressionWarnings: ['The mistakes.', 'ExpressionWarning'] },
  ExpressionWarning: { '': 'A mistake in an expression.', fieldRef: 'Where.', warning: 'What is wrong.' },
  ValidatingAdmissionPolicyBinding: {
    '': 'Puts a policy in force.',
    spec: ['Which one, and where.', 'ValidatingAdmissionPolicyBindingSpec'],
  },
  ValidatingAdmissionPolicyBindingSpec: {
    '': 'Which policy is in force, and where.',
    matchResources: ['Narrows what the policy is about.', 'MatchResources'],
    paramRef: ['Its parameters.', 'ParamRef'],
    policyName: 'The policy.',
    validationActions: 'What follows: Deny, Warn, Audit.',
  },
  ParamRef: {
    '': 'Parameters of a policy.',
    name: 'One object.',
    namespace: 'Its namespace.',
    parameterNotFoundAction: 'Allow or Deny where there is none.',
    selector: ['Several objects.', 'meta.LabelSelector'],
  },
};
