import assert from 'node:assert/strict';
import { test } from 'node:test';
import { hostileSources } from '#cel/testing/hostile.ts';
import { MAX_SOURCE_LENGTH } from '#cel/parse/limits.ts';
import { MAX_EXPRESSIONS, MAX_TOTAL_LENGTH } from '#cel/limits/source-limits.ts';
import { checkExpressions } from '#engine/expressions/compile-policy.ts';
import type { PolicySpec } from '#engine/admission/policies/policy-spec.ts';
import { validatingWebhookConfigurations } from '#engine/registry/kinds/admission/webhook-configurations.ts';

const times = <T>(count: number, make: (i: number) => T): T[] => Array.from({ length: count }, (_, i) => make(i));
const long = (length: number) => `object.a == '${'x'.repeat(length - 14)}'`;

const META = {
  apiVersion: 'admissionregistration.k8s.io/v1',
  kind: 'ValidatingWebhookConfiguration',
  metadata: { name: 'w' },
};

interface Case {
  readonly spec: PolicySpec;
  readonly want: readonly string[];
}

const cases: Record<string, Case> = {
  'expressions at the limit are accepted': {
    spec: {
      validations: [{ expression: long(MAX_SOURCE_LENGTH) }],
      variables: [{ name: 'a', expression: long(1000) }],
    },
    want: [],
  },
  'an expression above its own limit is rejected': {
    spec: { validations: [{ expression: long(MAX_SOURCE_LENGTH + 1) }] },
    want: ['spec.validations[0].expression: size: 10001, limit 10000'],
  },
  'all expressions and messages together have a limit': {
    spec: { validations: times(4, () => ({ expression: long(2500), messageExpression: `'${'x'.repeat(1998)}'` })) },
    want: [
      `spec: Forbidden: has expressions of 18000 characters altogether; expected at most ${MAX_TOTAL_LENGTH}; split the policy into several`,
    ],
  },
  'too many expressions are rejected': {
    spec: { variables: times(MAX_EXPRESSIONS + 1, (i) => ({ name: `v${i}`, expression: '1' })) },
    want: [`spec: Forbidden: has 257 expressions; expected at most ${MAX_EXPRESSIONS}; split the policy into several`],
  },
  'a constant regex that does not compile is rejected': {
    spec: { validations: [{ expression: "object.a.matches('(')" }] },
    want: ['spec.validations[0].expression: invalid matches argument'],
  },
  'the type checking of all expressions together is bounded': {
    spec: { validations: times(3, () => ({ expression: hostileSources['types that grow']!(0) })) },
    want: [1, 2].map((i) => `spec.validations[${i}].expression: expression is too complex to be type checked`),
  },
};
for (const [sentence, { spec, want }] of Object.entries(cases)) {
  test(sentence, () => {
    const found = checkExpressions(spec).map(({ field, message }) => {
      const detail = /invalid matches argument|size: \d+, limit \d+|expression is too complex.*$/.exec(message)?.[0];
      return `${field}: ${detail ?? message}`;
    });
    assert.deepEqual(found, want);
  });
}

test('a webhook configuration has the same limits', () => {
  const webhook = (i: number) => ({
    name: `w${i}.example.com`,
    clientConfig: { url: 'https://example.com' },
    sideEffects: 'None' as const,
    admissionReviewVersions: ['v1'],
    matchConditions: times(20, (j) => ({ name: `c${j}`, expression: long(200) })),
  });
  const configuration = { ...META, webhooks: times(4, webhook) };
  const errors = validatingWebhookConfigurations.strategy.validate?.(configuration) ?? [];
  assert.deepEqual(
    errors.map(({ field, message }) => `${field}: ${message}`),
    [
      `webhooks: Forbidden: has expressions of 16000 characters altogether; expected at most ${MAX_TOTAL_LENGTH}; split the configuration into several`,
    ],
  );
});
