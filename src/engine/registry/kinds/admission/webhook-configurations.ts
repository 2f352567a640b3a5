/** ValidatingWebhookConfiguration and MutatingWebhookConfiguration. */
import { createCheckBudget, checkSourceLimits } from '#cel/limits/source-limits.ts';
import { conditionFailure } from '#engine/expressions/match-conditions.ts';
import { apiType, optional, pointer, required } from '#engine/registry/kinds/api-type.ts';
import {
  checkMatchConditions,
  checkRule,
  matchCondition,
  ruleWithOperations,
} from '#engine/registry/kinds/admission/match.ts';
import { defineKind } from '#engine/registry/kinds/define-kind.ts';
import { age } from '#engine/registry/kinds/shared/columns.ts';
import { checkName, checkUnique } from '#engine/registry/kinds/shared/formats.ts';
import { checkLabelSelector, labelSelector } from '#engine/registry/kinds/meta/label-selector.ts';
import { checkServiceReference, webhookClientConfig } from '#engine/registry/kinds/shared/service-reference.ts';
import { type FieldError, forbiddenField, invalidValue, requiredValue } from '#kube/field-error.ts';
import { type Infer, int32, list, overrideOptions, oneOf, str } from '#kube/schema-dsl.ts';

const clientConfig = webhookClientConfig('admissionregistration.v1');

/** The fields of webhooks of both kinds. The first number in which they differ is that of objectSelector. */
const webhookFields = (objectSelector: number) => ({
  name: required(1, str(), 'Fully qualified name of the webhook.'),
  clientConfig: required(2, clientConfig, 'How to call the webhook.'),
  rules: optional(
    3,
    list(ruleWithOperations, { atomic: true }),
    'Operations and resources that the webhook is called for.',
  ),
  failurePolicy: pointer(
    4,
    oneOf(['Fail', 'Ignore'], { default: 'Fail' }),
    'How failures of the call are handled: Ignore or Fail.',
  ),
  matchPolicy: pointer(
    9,
    oneOf(['Equivalent', 'Exact'], { default: 'Equivalent' }),
    'Whether rules also match requests to equivalent versions of a resource: Exact or Equivalent.',
  ),
  namespaceSelector: pointer(
    5,
    overrideOptions(labelSelector, { default: {} }),
    'Selects the namespaces whose requests go to the webhook.',
  ),
  objectSelector: pointer(
    objectSelector,
    overrideOptions(labelSelector, { default: {} }),
    'Selects the objects whose requests go to the webhook.',
  ),
  sideEffects: required(6, oneOf(['None', 'NoneOnDryRun']), 'Side effects of the webhook: None or NoneOnDryRun.', {
    pointer: true,
  }),
  timeoutSeconds: pointer(7, int32({ default: 10 }), 'Timeout of a call in seconds.'),
  admissionReviewVersions: required(
    8,
    list(str(), { atomic: true }),
    'Versions of AdmissionReview that the webhook accepts, in order of preference.',
  ),
});

const matchConditions = (number: number) =>
  optional(
    number,
    list(matchCondition, { mergeKey: 'name' }),
    'CEL expressions that must all be true for the webhook to be called.',
  );

const validatingWebhook = apiType('admissionregistration.v1.ValidatingWebhook', 'A webhook that may reject requests.', {
  ...webhookFields(10),
  matchConditions: matchConditions(11),
});

const mutatingWebhook = apiType(
  'admissionregistration.v1.MutatingWebhook',
  'A webhook that may change or reject requests.',
  {
    ...webhookFields(11),
    reinvocationPolicy: pointer(
      10,
      oneOf(['IfNeeded', 'Never'], { default: 'Never' }),
      'Whether the webhook is called again after later plugins changed the object: Never or IfNeeded.',
    ),
    matchConditions: matchConditions(12),
  },
);

type Webhook = Infer<typeof validatingWebhook>;
type ClientConfig = Infer<typeof clientConfig>;

const validatingConfiguration = apiType(
  'admissionregistration.v1.ValidatingWebhookConfiguration',
  'Webhooks that may reject requests before objects are stored, without changing them.',
  {
    webhooks: optional(
      2,
      list(validatingWebhook, { mergeKey: 'name' }),
      'Webhooks to call, with the operations that each is called for.',
    ),
  },
);
const mutatingConfiguration = apiType(
  'admissionregistration.v1.MutatingWebhookConfiguration',
  'Webhooks that may change or reject requests before objects are stored.',
  {
    webhooks: optional(
      2,
      list(mutatingWebhook, { mergeKey: 'name' }),
      'Webhooks to call, with the operations that each is called for.',
    ),
  },
);

const columns = [
  {
    name: 'Webhooks',
    type: 'integer' as const,
    value: ({ webhooks }: { webhooks?: readonly unknown[] }) => webhooks?.length ?? 0,
  },
  age,
];

export const validatingWebhookConfigurations = defineKind({
  group: 'admissionregistration.k8s.io',
  kind: 'ValidatingWebhookConfiguration',
  plural: 'validatingwebhookconfigurations',
  namespaced: false,
  needsRevision: true,
  categories: ['api-extensions'],
  schema: validatingConfiguration,
  columns,
  generation: true,
  validate: ({ webhooks }) => checkWebhooks(webhooks ?? []),
});

export const mutatingWebhookConfigurations = defineKind({
  group: 'admissionregistration.k8s.io',
  kind: 'MutatingWebhookConfiguration',
  plural: 'mutatingwebhookconfigurations',
  namespaced: false,
  needsRevision: true,
  categories: ['api-extensions'],
  schema: mutatingConfiguration,
  columns,
  generation: true,
  validate: ({ webhooks }) => checkWebhooks(webhooks ?? []),
});

function checkWebhooks(webhooks: readonly Webhook[]): FieldError[] {
  return [
    ...webhooks.flatMap((webhook, i) => checkWebhook(`webhooks[${i}]`, webhook)),
    ...checkUnique(webhooks.map(({ name }, i) => [`webhooks[${i}].name`, name] as const)),
    ...checkExpressions(webhooks),
  ];
}

function checkWebhook(field: string, webhook: Webhook): FieldError[] {
  const { name, rules = [], timeoutSeconds = 10, admissionReviewVersions } = webhook;
  const errors = checkFullName(`${field}.name`, name);
  errors.push(...rules.flatMap((rule, i) => checkRule(`${field}.rules[${i}]`, rule)));
  if (timeoutSeconds < 1 || timeoutSeconds > 30) {
    const text = 'the timeout value must be between 1 and 30 seconds';
    errors.push(invalidValue(`${field}.timeoutSeconds`, timeoutSeconds, text));
  }
  errors.push(
    ...checkLabelSelector(`${field}.namespaceSelector`, webhook.namespaceSelector),
    ...checkLabelSelector(`${field}.objectSelector`, webhook.objectSelector),
    ...checkClientConfig(`${field}.clientConfig`, webhook.clientConfig),
    ...checkMatchConditions(`${field}.matchConditions`, webhook.matchConditions),
    ...checkReviewVersions(`${field}.admissionReviewVersions`, admissionReviewVersions),
  );
  return errors;
}

/** Compiles expressions. One that does not compile would fail at each request. */
function checkExpressions(webhooks: readonly Webhook[]): FieldError[] {
  const sources = webhooks.flatMap(({ matchConditions = [] }, i) =>
    matchConditions.map(({ expression }, j) => ({
      field: `webhooks[${i}].matchConditions[${j}].expression`,
      text: expression.trim(),
    })),
  );
  const error = checkSourceLimits(
    sources.map(({ text }) => text),
    'configuration',
  );
  if (error !== undefined) return [forbiddenField('webhooks', error)];
  const checkBudget = createCheckBudget();
  return sources.flatMap(({ field, text }) => {
    const failure = text === '' ? undefined : conditionFailure(text, checkBudget);
    return failure === undefined ? [] : [invalidValue(field, text, failure)];
  });
}

/** Requires at least three segments, so that two vendors never choose the same name: `check.example.com`. */
function checkFullName(field: string, name: string): FieldError[] {
  if (name === '') return [requiredValue(field)];
  const errors = checkName(field, name, 'subdomain');
  if (errors.length > 0 || name.split('.').length >= 3) return errors;
  return [invalidValue(field, name, 'should be a domain with at least three segments separated by dots')];
}

const REVIEW_VERSIONS = ['v1', 'v1beta1'];

function checkReviewVersions(field: string, versions: readonly string[]): FieldError[] {
  if (versions.length === 0) return [requiredValue(field, `must specify one of ${REVIEW_VERSIONS.join(', ')}`)];
  const seen = new Set<string>();
  const errors = versions.flatMap((version, i) => {
    if (seen.has(version)) return [invalidValue(`${field}[${i}]`, version, 'duplicate version')];
    seen.add(version);
    return checkName(`${field}[${i}]`, version, 'label1035');
  });
  if (!versions.some((version) => REVIEW_VERSIONS.includes(version))) {
    errors.push(invalidValue(field, versions, `must include at least one of ${REVIEW_VERSIONS.join(', ')}`));
  }
  return errors;
}

const ONE_OF_TWO = 'exactly one of url or service is required';

/** Checks the clientConfig of an admission or conversion webhook. */
export function checkClientConfig(field: string, { url, service }: Readonly<ClientConfig>): FieldError[] {
  if (service === undefined) {
    return url === undefined ? [requiredValue(field, ONE_OF_TWO)] : checkUrl(`${field}.url`, url);
  }
  if (url !== undefined) return [requiredValue(field, ONE_OF_TWO)];
  const { path = '' } = service;
  const errors = checkServiceReference(`${field}.service`, service);
  if (path !== '' && !path.startsWith('/')) {
    errors.push(invalidValue(`${field}.service.path`, path, "must start with a '/'"));
  }
  return errors;
}

const URL_FORM = '; desired format: https://host[/path]';

function checkUrl(field: string, text: string): FieldError[] {
  const url = URL.parse(text);
  if (url === null) {
    return [requiredValue(field, `url must be a valid URL: cannot parse ${JSON.stringify(text)}${URL_FORM}`)];
  }
  const errors: FieldError[] = [];
  const scheme = url.protocol.slice(0, -1);
  if (scheme !== 'https') {
    errors.push(invalidValue(field, scheme, `'https' is the only allowed URL scheme${URL_FORM}`));
  }
  if (url.host === '') errors.push(invalidValue(field, url.host, `host must be specified${URL_FORM}`));
  if (url.username !== '') {
    errors.push(invalidValue(field, url.username, 'user information is not permitted in the URL'));
  }
  if (url.hash !== '') errors.push(invalidValue(field, url.hash.slice(1), 'fragments are not permitted in the URL'));
  if (url.search !== '') {
    errors.push(invalidValue(field, url.search.slice(1), 'query parameters are not permitted in the URL'));
  }
  return errors;
}
