import assert from 'node:assert/strict';
import { test } from 'node:test';
import { callForValue, none, plain, testCalls } from '#cel/extensions/testing/call.ts';
import { CelNamedFormat, namedFormatLibrary } from '#cel/kubernetes/named-format.ts';

const good: Record<string, string[]> = {
  dns1123Label: ['my-label-name'],
  dns1123Subdomain: ['apiextensions.k8s.io'],
  dns1035Label: ['my-label-name'],
  qualifiedName: ['my.name', 'apiextensions.k8s.io/v1beta1'],
  dns1123LabelPrefix: ['my-label-prefix-'],
  dns1123SubdomainPrefix: ['mysubdomain.prefix.-'],
  dns1035LabelPrefix: ['my-label-prefix-'],
  labelValue: ['my-cool-label-Value', ''],
  uri: ['http://example.com', '/path'],
  uuid: ['123e4567-e89b-12d3-a456-426614174000', '123E4567E89B12D3A456426614174000'],
  byte: ['aGVsbG8=', 'aGVsbG9v', 'aGVsbA=='],
  date: ['2021-01-01', '2024-02-29', '0000-12-31'],
  datetime: ['2021-01-01T00:00:00Z', '2021-01-01t23:59:59.123+02:00'],
};
const label =
  "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
const bad: Record<string, [string, string][]> = {
  dns1123Label: [
    ['contains a space', label],
    ['a.b', 'must not contain dots'],
  ],
  dns1123LabelPrefix: [['contains a space-', label]],
  uri: [['example', 'parse "example": invalid URI for request']],
  uuid: [['123e4567', 'does not match the UUID format']],
  byte: ['aGVsbG8', '', '====', 'aGVs*G8='].map((text) => [text, 'invalid base64']),
  date: ['2020-01-32', '2023-02-29', '2020-13-01', '2020-00-01', '20-01-01', '2020-1-1'].map((text) => [
    text,
    'invalid date',
  ]),
  datetime: ['2020-01-32T00:00:00Z', '2020-01-01T24:00:00Z', '2020-01-01T00:00:00', '2020-01-01'].map((text) => [
    text,
    'invalid datetime',
  ]),
};

for (const [name, texts] of Object.entries(good)) {
  const format = callForValue(namedFormatLibrary, `format.${name}`, []);
  testCalls(
    namedFormatLibrary,
    Object.fromEntries(texts.map((text) => [`${name} takes "${text}"`, ['validate', [format, text], none]])),
  );
  test(`${name} is found by its name`, () => {
    const { optional } = plain(callForValue(namedFormatLibrary, 'format.named', [name])) as { optional: unknown };
    assert.ok(optional instanceof CelNamedFormat && format instanceof CelNamedFormat && optional.equals(format));
  });
}
for (const [name, texts] of Object.entries(bad)) {
  const format = callForValue(namedFormatLibrary, `format.${name}`, []);
  const cases = texts.map(([text, why]) => [
    `${name} refuses "${text}"`,
    ['validate', [format, text], { optional: [why] }] as const,
  ]);
  testCalls(namedFormatLibrary, Object.fromEntries(cases));
}

testCalls(namedFormatLibrary, { 'there is no other format': ['format.named', ['unknown'], none] });

test('formats are equal only if their names are', () => {
  const [a, b] = ['uuid', 'byte'].map(
    (name) => callForValue(namedFormatLibrary, `format.${name}`, []) as CelNamedFormat,
  );
  assert.equal(a?.equals(b as CelNamedFormat), false);
});
