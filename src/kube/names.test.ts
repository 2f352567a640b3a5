import assert from 'node:assert/strict';
import test from 'node:test';
import {
  annotationKeyErrors,
  labelKeyErrors,
  labelValueErrors,
  nameErrors,
  namePrefixErrors,
  type NameRule,
} from '#kube/names.ts';

const SUBDOMAIN =
  "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const LABEL =
  "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
const LABEL_1035 =
  "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')";
const NAME_PART =
  "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
const LABEL_VALUE =
  "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";

const names: [NameRule, string, string[]][] = [
  ['subdomain', 'a', []],
  ['subdomain', 'a-b.c.0', []],
  ['subdomain', 'a'.repeat(253), []],
  ['subdomain', 'a'.repeat(254), ['must be no more than 253 characters']],
  ['subdomain', 'Bad_Name', [SUBDOMAIN]],
  ['subdomain', '', [SUBDOMAIN]],
  ['subdomain', 'a..b', [SUBDOMAIN]],
  ['subdomain', '-a', [SUBDOMAIN]],
  ['subdomain', 'a-', [SUBDOMAIN]],
  ['subdomain', 'a\n', [SUBDOMAIN]],
  ['subdomain', 'ä'.repeat(127), ['must be no more than 253 characters', SUBDOMAIN]],
  ['label', 'a-1', []],
  ['label', 'a.b', ['must not contain dots']],
  ['label', 'A', [LABEL]],
  ['label', 'a'.repeat(64), ['must be no more than 63 characters']],
  ['label1035', 'a1', []],
  ['label1035', '1a', [LABEL_1035]],
  ['label1035', 'UPPER', [LABEL_1035]],
  ['path-segment', 'system:node:A_b', []],
  ['path-segment', '.', ["may not be '.'"]],
  ['path-segment', '..', ["may not be '..'"]],
  ['path-segment', 'a/b%2f', ["may not contain '/'", "may not contain '%'"]],
];

for (const [rule, name, want] of names) {
  test(`${rule} ${JSON.stringify(name.slice(0, 20))} of ${name.length}: ${want.length} errors`, () => {
    assert.deepEqual(nameErrors(rule, name), want);
  });
}

const prefixes: [NameRule, string, string[]][] = [
  ['subdomain', 'pod-', []],
  ['subdomain', '-', [SUBDOMAIN]],
  ['subdomain', 'Pod-', [SUBDOMAIN]],
  ['path-segment', '..', []],
];

for (const [rule, prefix, want] of prefixes) {
  test(`generateName ${prefix} by ${rule}`, () => assert.deepEqual(namePrefixErrors(rule, prefix), want));
}

const keys: [string, string[]][] = [
  ['app', []],
  ['app.kubernetes.io/name', []],
  ['a'.repeat(63), []],
  ['', [`name part must be non-empty`, `name part ${NAME_PART}`]],
  ['a'.repeat(64), ['name part must be no more than 63 characters']],
  ['/a', ['prefix part must be non-empty']],
  ['UP/a', [`prefix part ${SUBDOMAIN}`]],
  ['x/', ['name part must be non-empty', `name part ${NAME_PART}`]],
  ['a b', [`name part ${NAME_PART}`]],
  [
    'a/b/c',
    [`a qualified name ${NAME_PART} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')`],
  ],
];

for (const [key, want] of keys) {
  test(`label key ${JSON.stringify(key)}`, () => assert.deepEqual(labelKeyErrors(key), want));
}

test('annotation keys may have a prefix in upper case, label keys may not', () => {
  assert.deepEqual(annotationKeyErrors('Example.COM/Key'), []);
  assert.deepEqual(labelKeyErrors('Example.COM/Key'), [`prefix part ${SUBDOMAIN}`]);
});

test('checks label values', () => {
  assert.deepEqual(labelValueErrors(''), []);
  assert.deepEqual(labelValueErrors('A_b.c-1'), []);
  assert.deepEqual(labelValueErrors('not valid!'), [LABEL_VALUE]);
  assert.deepEqual(labelValueErrors('-a'), [LABEL_VALUE]);
  assert.deepEqual(labelValueErrors('a'.repeat(64)), ['must be no more than 63 characters']);
});
