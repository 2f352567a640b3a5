/** x-kubernetes-validations and stricter schemas, as clients see them. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { aGadget, gadgetCrd, GADGETS, installGadgets } from '#test/support/gadgets.ts';
import { startTestApi, type Loose, type TestApi } from '#test/support/test-api.ts';

const CRDS = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions';
let api: TestApi;

before(async () => {
  api = await startTestApi();
  await installGadgets(api, ruledCrd());
});
after(() => api.stop());

function schemaOf(crd: Loose): Loose {
  return crd.spec.versions[0].schema.openAPIV3Schema;
}

function ruledCrd(): Loose {
  const crd = gadgetCrd();
  const { spec, status } = schemaOf(crd).properties;
  schemaOf(crd)['x-kubernetes-validations'] = [
    { rule: "self.metadata.name != 'forbidden'", message: 'that name is taken', fieldPath: '.spec.note' },
  ];
  Object.assign(spec.properties, {
    fixed: {
      type: 'string',
      'x-kubernetes-validations': [{ rule: 'self == oldSelf', message: 'fixed is immutable' }],
    },
    wanted: { type: 'integer' },
    ports: {
      type: 'array',
      maxItems: 4,
      'x-kubernetes-list-type': 'map',
      'x-kubernetes-list-map-keys': ['name'],
      items: {
        type: 'object',
        required: ['name'],
        properties: {
          name: { type: 'string', maxLength: 20 },
          number: { type: 'integer', 'x-kubernetes-validations': [{ rule: 'self >= oldSelf' }] },
        },
      },
    },
    level: {
      type: 'integer',
      'x-kubernetes-validations': [
        {
          rule: 'oldSelf.hasValue() ? self >= oldSelf.value() : self == 1',
          optionalOldSelf: true,
          messageExpression: "oldSelf.hasValue() ? 'level was %d'.format([oldSelf.value()]) : 'level starts at 1'",
          reason: 'FieldValueForbidden',
        },
      ],
    },
    sizes: {
      type: 'object',
      maxProperties: 4,
      additionalProperties: { type: 'integer', 'x-kubernetes-validations': [{ rule: 'self > 0' }] },
    },
  });
  spec['x-kubernetes-validations'] = [
    {
      rule: '!has(self.wanted) || self.wanted <= self.size',
      messageExpression: "'wanted %d of %d'.format([self.wanted, self.size])",
    },
    { rule: "!has(self.note) || self.note.matches('^[a-z]*$') || [][0]" },
  ];
  status.properties = { phase: { type: 'string', 'x-kubernetes-validations': [{ rule: "self != 'Lost'" }] } };
  return crd;
}

async function refusal(method: string, path: string, body: Loose): Promise<Loose[]> {
  const { status, body: answer } = await api.call(method, path, { body });
  assert.equal(status, 422, JSON.stringify(answer));
  return answer.details.causes;
}

const creations: Record<string, { name?: string; spec: Loose; wants: Loose[] }> = {
  'reports a violated rule with the type in place of the value': {
    spec: { size: 2, wanted: 3 },
    wants: [{ reason: 'FieldValueInvalid', message: 'Invalid value: "object": wanted 3 of 2', field: 'spec' }],
  },
  'reports a rule that could not be evaluated': {
    spec: { size: 2, note: 'A' },
    wants: [
      {
        reason: 'FieldValueInvalid',
        message:
          'Invalid value: "object": index out of bounds: 0 evaluating rule: !has(self.note) || self.note.matches(\'^[a-z]*$\') || [][0]',
        field: 'spec',
      },
    ],
  },
  'reports a rule of the whole object at its fieldPath': {
    name: 'forbidden',
    spec: { size: 2 },
    wants: [
      { reason: 'FieldValueInvalid', message: 'Invalid value: "object": that name is taken', field: 'spec.note' },
    ],
  },
  'evaluates rules with an optional old value at creation, too': {
    spec: { size: 2, level: 5 },
    wants: [{ reason: 'FieldValueForbidden', message: 'Forbidden: level starts at 1', field: 'spec.level' }],
  },
  'reports the key of a map': {
    spec: { size: 2, sizes: { a: 1, b: 0 } },
    wants: [
      {
        reason: 'FieldValueInvalid',
        message: 'Invalid value: "integer": failed rule: self > 0',
        field: 'spec.sizes[b]',
      },
    ],
  },
  'evaluates no rules if types are wrong': {
    spec: { wanted: 3 },
    wants: [
      { reason: 'FieldValueRequired', message: 'Required value', field: 'spec.size' },
      {
        reason: 'FieldValueInvalid',
        message:
          'Invalid value: "null": some validation rules were not checked because the object was invalid; correct the existing errors to complete validation',
        field: '<nil>',
      },
    ],
  },
};

for (const [name, { name: object = 'new', spec, wants }] of Object.entries(creations)) {
  test(name, async () => {
    assert.deepEqual(await refusal('POST', GADGETS, aGadget(object, spec)), wants);
  });
}

test('transition rules compare with the old object, and list items by their keys', async () => {
  const ports = [
    { name: 'a', number: 5 },
    { name: 'b', number: 7 },
  ];
  await api.ok('POST', GADGETS, { body: aGadget('moving', { size: 2, fixed: 'x', level: 1, ports }) });
  const path = `${GADGETS}/moving`;
  assert.deepEqual(await refusal('PATCH', path, { spec: { fixed: 'y' } }), [
    { reason: 'FieldValueInvalid', message: 'Invalid value: "string": fixed is immutable', field: 'spec.fixed' },
  ]);
  assert.deepEqual(await refusal('PATCH', path, { spec: { level: 0 } }), [
    { reason: 'FieldValueForbidden', message: 'Forbidden: level was 1', field: 'spec.level' },
  ]);
  // In another order, with a new item in front.
  const moved = [
    { name: 'c', number: 1 },
    { name: 'b', number: 6 },
    { name: 'a', number: 5 },
  ];
  assert.deepEqual(await refusal('PATCH', path, { spec: { ports: moved } }), [
    {
      reason: 'FieldValueInvalid',
      message: 'Invalid value: "integer": failed rule: self >= oldSelf',
      field: 'spec.ports[1].number',
    },
  ]);
  await api.ok('PATCH', path, {
    body: { spec: { fixed: null, level: 4, ports: [moved[0], { name: 'b', number: 8 }] } },
  });
  await api.ok('PATCH', path, { body: { spec: { fixed: 'z' } } });
});

test('a status update is checked by the rules of the status and of the whole object', async () => {
  await api.ok('POST', GADGETS, { body: aGadget('shown', { size: 2 }) });
  assert.deepEqual(await refusal('PATCH', `${GADGETS}/shown/status`, { status: { phase: 'Lost' } }), [
    {
      reason: 'FieldValueInvalid',
      message: 'Invalid value: "string": failed rule: self != \'Lost\'',
      field: 'status.phase',
    },
  ]);
  await api.ok('PATCH', `${GADGETS}/shown/status`, { body: { status: { phase: 'Found' } } });
});

test('stored objects stay usable under a stricter schema', async () => {
  await api.ok('POST', GADGETS, { body: aGadget('old', { size: 9, note: 'long', mode: 'manual', sizes: { a: 7 } }) });
  const crd = await api.ok('GET', `${CRDS}/gadgets.golden.local`);
  const { properties } = schemaOf(crd).properties.spec;
  properties.size.maximum = 5;
  properties.note['x-kubernetes-validations'] = [{ rule: 'self.size() < 3', message: 'too long' }];
  delete properties.mode;
  properties.fresh = { type: 'string', default: 'new' };
  await api.ok('PUT', `${CRDS}/gadgets.golden.local`, { body: crd });
  await api.settle();

  const read = await api.ok('GET', `${GADGETS}/old`);
  assert.deepEqual(read.spec, { size: 9, note: 'long', sizes: { a: 7 }, fresh: 'new' });
  const { items } = await api.ok('GET', GADGETS);
  assert.deepEqual(items.find(({ metadata }: Loose) => metadata.name === 'old').spec, read.spec);

  const touched = await api.call('PATCH', `${GADGETS}/old`, { body: { spec: { sizes: { a: 8 } } } });
  assert.equal(touched.status, 200, touched.text);
  assert.deepEqual(touched.warnings, ['spec.note: Invalid value: "string": too long']);
  assert.deepEqual(await refusal('PATCH', `${GADGETS}/old`, { spec: { size: 8, note: 'longer' } }), [
    {
      reason: 'FieldValueInvalid',
      message: 'Invalid value: 8: spec.size in body should be less than or equal to 5',
      field: 'spec.size',
    },
    { reason: 'FieldValueInvalid', message: 'Invalid value: "string": too long', field: 'spec.note' },
  ]);
});

const definitions: Record<string, { rules: Loose[]; wants: RegExp }> = {
  'a field that does not exist': {
    rules: [{ rule: 'self.sise > 1' }],
    wants:
      /^spec\.versions\[0\]\.schema\.openAPIV3Schema\.properties\[spec\]\.x-kubernetes-validations\[0\]\.rule: Invalid value: apiextensions\.ValidationRule\{Rule:"self\.sise > 1", Message:"", MessageExpression:"", Reason:\(\*apiextensions\.FieldValueErrorReason\)\(nil\), FieldPath:"", OptionalOldSelf:\(\*bool\)\(nil\)\}: compilation failed: ERROR: <input>:1:5: undefined field 'sise'/,
  },
  'a rule that is not boolean': {
    rules: [{ rule: 'self.size' }],
    wants: /\.rule: Invalid value: apiextensions.*: cel expression must evaluate to a bool$/,
  },
  'a rule without a cost bound': {
    rules: [{ rule: 'self.color.matches(self.note)' }],
    wants:
      /\.rule: Forbidden: estimated rule cost exceeds budget by factor of more than 100x \(try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, maps, and strings are declared\)$/m,
  },
};

for (const [name, { rules, wants }] of Object.entries(definitions)) {
  test(`refuses a definition with ${name}`, async () => {
    const crd = gadgetCrd();
    crd.metadata.name = 'things.golden.local';
    crd.spec.names = { plural: 'things', kind: 'Thing' };
    delete schemaOf(crd).properties.spec.properties.color.enum;
    schemaOf(crd).properties.spec['x-kubernetes-validations'] = rules;
    crd.spec.versions[0].selectableFields = [];
    const causes = await refusal('POST', CRDS, crd);
    const messages = causes.map(({ field, message }) => `${field}: ${message}`).join('\n');
    assert.match(messages, wants);
  });
}
