import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fieldAt, FieldPathError } from '#engine/registry/structural/rules/field-path.ts';
import { compileRules, hasRules } from '#engine/registry/structural/rules/rule-tree.ts';
import type { Schema, ValidationRule } from '#kube/schema.ts';

function run(schema: Schema, spec: unknown, old?: unknown, lenient = false) {
  const root: Schema = { type: 'object', properties: { spec: schema } };
  const work = compileRules(root).run({ spec }, old === undefined ? undefined : { spec: old }, { lenient });
  let units = 0;
  for (;;) {
    const step = work.next();
    if (step.done === true) return { ...step.value, units };
    units += step.value;
  }
}

const ruled = (type: Schema['type'], ...rules: ValidationRule[]): Schema => ({
  ...(type === undefined ? { 'x-kubernetes-int-or-string': true } : { type }),
  'x-kubernetes-validations': rules,
});

interface Case {
  readonly schema: Schema;
  readonly spec: unknown;
  readonly old?: unknown;
  readonly lenient?: boolean;
  readonly errors?: string[];
  readonly warnings?: string[];
}

const cases: Record<string, Case> = {
  'a satisfied rule returns no errors': { schema: ruled('integer', { rule: 'self > 1' }), spec: 2 },
  'its message is trimmed': {
    schema: ruled('integer', { rule: 'self > 1', message: ' more! ' }),
    spec: 1,
    errors: ['spec: Invalid value: "integer": more!'],
  },
  'the reason determines the error': {
    schema: ruled(
      'integer',
      { rule: 'self > 1', message: 'more', reason: 'FieldValueRequired' },
      { rule: 'self > 2', reason: 'FieldValueDuplicate' },
    ),
    spec: 1,
    errors: ['spec: Required value: more', 'spec: Duplicate value: "integer"'],
  },
  'an empty messageExpression falls back to the message': {
    schema: ruled('integer', { rule: 'self > 1', message: 'more', messageExpression: "' '" }),
    spec: 1,
    errors: ['spec: Invalid value: "integer": more'],
  },
  'a failing messageExpression falls back to the rule': {
    schema: ruled('integer', { rule: 'self > 1', messageExpression: "['a'][self]" }),
    spec: 1,
    errors: ['spec: Invalid value: "integer": failed rule: self > 1'],
  },
  'an int-or-string keeps its type': {
    schema: ruled(undefined, { rule: "type(self) == int ? self < 5 : self.endsWith('%')" }),
    spec: '5',
    errors: ['spec: Invalid value: "": failed rule: type(self) == int ? self < 5 : self.endsWith(\'%\')'],
  },
  'a type error at run time is reported as such': {
    schema: ruled(undefined, { rule: 'self < 5' }),
    spec: 'a',
    errors: [
      'spec: Invalid value: "": \'no such overload\': call arguments did not match a supported operator, function or macro signature for rule: self < 5',
    ],
  },
  'rules skip null': { schema: { ...ruled('integer', { rule: 'false' }), nullable: true }, spec: null },
  'a transition rule is skipped without an old value': {
    schema: ruled('integer', { rule: 'self == oldSelf' }),
    spec: 1,
  },
  'an error in an unchanged value becomes a warning': {
    schema: ruled('integer', { rule: 'self > 1', message: 'more' }),
    spec: 1,
    old: 1,
    lenient: true,
    warnings: ['spec: Invalid value: "integer": more'],
  },
  'a failed transition rule is an error even if nothing changed': {
    schema: ruled('integer', { rule: 'self > oldSelf', message: 'grow' }),
    spec: 1,
    old: 1,
    lenient: true,
    errors: ['spec: Invalid value: "integer": grow'],
  },
  'a rule is limited to the cost of a call': {
    schema: {
      type: 'array',
      items: { type: 'integer' },
      'x-kubernetes-validations': [
        { rule: 'self.all(x, self.all(y, self.all(z, x + y + z >= 0)))' },
        { rule: 'false' },
      ],
    },
    spec: Array.from({ length: 200 }, (_, i) => i),
    errors: [
      'spec: Invalid value: "array": \'operation cancelled: actual cost limit exceeded\': no further validation rules will be run due to call cost exceeds limit for rule: self.all(x, self.all(y, self.all(z, x + y + z >= 0)))',
    ],
  },
  'all rules are limited to the cost of an object': {
    schema: {
      type: 'array',
      items: {
        type: 'array',
        items: { type: 'integer' },
        'x-kubernetes-validations': [{ rule: 'self.all(x, self.all(y, x + y >= 0))' }],
      },
    },
    spec: Array.from({ length: 60 }, () => Array.from({ length: 220 }, (_, i) => i)),
    errors: ['validation failed due to running out of cost budget, no further validation rules will be run'],
  },
};

test('rules of a schema', async (t) => {
  for (const [name, { schema, spec, old, lenient, errors = [], warnings = [] }] of Object.entries(cases)) {
    await t.test(name, () => {
      const found = run(schema, spec, old, lenient);
      const reported = found.errors.map(({ field, message }) => `${field}: ${message}`);
      assert.equal(reported.length, errors.length, reported.join('\n'));
      for (const [i, text] of reported.entries()) assert.ok(text.endsWith(errors[i]!), text);
      assert.deepEqual(found.warnings, warnings);
      assert.ok(found.units <= 11_000_000, String(found.units));
    });
  }
});

test('hasRules detects schemas without rules', () => {
  assert.equal(hasRules({ type: 'object', properties: { a: { type: 'array', items: { type: 'string' } } } }), false);
  assert.equal(hasRules({ type: 'array', items: ruled('string', { rule: 'true' }) }), true);
});

const fields: Schema = {
  type: 'object',
  properties: {
    spec: { type: 'object', properties: { 'a.b': { type: 'string' }, size: { type: 'integer' } } },
    labels: { type: 'object', additionalProperties: { type: 'object', properties: { x: { type: 'string' } } } },
    list: { type: 'array', items: { type: 'string' } },
  },
};

const paths: Record<string, string> = {
  '.spec.size': 'spec.size',
  ".spec['a.b']": 'spec.a.b',
  ".labels['a\\'b'].x": "labels[a'b].x",
  '.labels.a.x': 'labels[a].x',
  '.nothing': 'does not refer to a valid field',
  '.list[0]': 'expected single quoted string but got 0',
  'spec.size': 'expected [ or . but got: spec',
  '.spec.': 'unexpected end of JSON path',
  ".spec['size'": 'unexpected end of JSON path',
  ".spec['\\x']": 'invalid string literal: invalid escape char \\x',
};

test('paths of fields', async (t) => {
  for (const [path, want] of Object.entries(paths)) {
    await t.test(path, () => {
      try {
        assert.equal(fieldAt(path, fields).path, want);
      } catch (error) {
        if (!(error instanceof FieldPathError)) throw error;
        assert.equal(error.message, want);
      }
    });
  }
  await t.test('brackets can be disallowed', () => {
    assert.throws(() => fieldAt(".spec['size']", fields, { brackets: false }), {
      message: 'array notation is not allowed',
    });
  });
});
