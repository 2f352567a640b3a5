/** Unknown and duplicate fields: reported as warnings, refused or ignored, as the client requests. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { GADGETS, aGadget, installGadgets } from '#test/support/gadgets.ts';
import { startTestApi, type TestApi } from '#test/support/test-api.ts';

let api: TestApi;

before(async () => {
  api = await startTestApi();
  await installGadgets(api);
  await api.ok('POST', CONFIG_MAPS, { body: { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'here' } } });
  await api.ok('POST', GADGETS, { body: aGadget('here', { size: 3, color: 'red' }) });
});
after(() => api.stop());

const CONFIG_MAPS = '/api/v1/namespaces/golden/configmaps';
const cm = (rest: string) => `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},${rest}}`;
const custom = (rest: string) => `{"apiVersion":"golden.local/v1","kind":"Gadget","metadata":{"name":"a"},${rest}}`;
const CM_FAULT = 'ConfigMap in version "v1" cannot be handled as a ConfigMap: strict decoding error: ';
const GADGET_FAULT = 'Gadget in version "v1" cannot be handled as a Gadget: strict decoding error: ';
const YAML = 'application/yaml';
const yaml = ['apiVersion: v1', 'kind: ConfigMap', 'metadata: {name: a}', 'data: {b: c}', 'data:', '  b: d', 'x: 1'];

interface Case {
  readonly method?: string;
  readonly path: string;
  readonly body: string;
  readonly contentType?: string;
  /** The warnings of a write with fieldValidation=Warn. */
  readonly warnings: string[];
  /** The message of a write with fieldValidation=Strict. */
  readonly message: string | RegExp;
  readonly code?: number;
}

const cases: Record<string, Case> = {
  'an unknown field': {
    path: CONFIG_MAPS,
    body: cm('"dat":{}'),
    warnings: ['unknown field "dat"'],
    message: `${CM_FAULT}unknown field "dat"`,
  },
  'a duplicate field': {
    path: CONFIG_MAPS,
    body: cm('"data":{"b":"c","b":"d"},"data":{"e":"f"}'),
    warnings: ['duplicate field "data.b"', 'duplicate field "data"'],
    message: `${CM_FAULT}duplicate field "data.b", duplicate field "data"`,
  },
  'an unknown and a duplicate field, in the order of the document': {
    path: CONFIG_MAPS,
    body: cm('"dat":{"a":1,"a":2},"data":{"b":"c","b":"d"},"immutabl":true'),
    warnings: ['unknown field "dat"', 'duplicate field "data.b"', 'unknown field "immutabl"'],
    message: `${CM_FAULT}unknown field "dat", duplicate field "data.b", unknown field "immutabl"`,
  },
  'a duplicate field of a custom resource': {
    path: GADGETS,
    body: custom('"spec":{"size":3,"size":2}'),
    warnings: ['duplicate field "spec.size"'],
    message: `${GADGET_FAULT}duplicate field "spec.size"`,
  },
  'a duplicate field that pruning would remove': {
    path: GADGETS,
    body: custom('"spec":{"bogus":1,"size":3,"size":2}'),
    warnings: ['duplicate field "spec.size"', 'unknown field "spec.bogus"'],
    message: `${GADGET_FAULT}duplicate field "spec.size", unknown field "spec.bogus"`,
  },
  'YAML errors that name lines': {
    path: CONFIG_MAPS,
    body: yaml.join('\n'),
    contentType: YAML,
    warnings: ['line 6: key "data" already set in map', 'unknown field "x"'],
    message: `${CM_FAULT}yaml: unmarshal errors:\n  line 6: key "data" already set in map, unknown field "x"`,
  },
  'an update': {
    method: 'PUT',
    path: `${CONFIG_MAPS}/here`,
    body: cm('"data":{},"data":{"b":"c"}').replace('"a"', '"here"'),
    warnings: ['duplicate field "data"'],
    message: `${CM_FAULT}duplicate field "data"`,
  },
  'a merge patch': {
    method: 'PATCH',
    path: `${GADGETS}/here`,
    body: '{"spec":{"size":1,"size":2,"bogus":1}}',
    contentType: 'application/merge-patch+json',
    warnings: ['duplicate field "spec.size"', 'unknown field "spec.bogus"'],
    message: /: strict decoding error: duplicate field "spec\.size", unknown field "spec\.bogus"$/,
    code: 422,
  },
  'a strategic merge patch': {
    method: 'PATCH',
    path: `${CONFIG_MAPS}/here`,
    body: '{"data":{"b":"c","b":"d"}}',
    contentType: 'application/strategic-merge-patch+json',
    warnings: ['duplicate field "data.b"'],
    message:
      / "" is invalid: patch: Invalid value: "map\[data:map\[b:d\]\]": strict decoding error: duplicate field "data\.b"$/,
    code: 422,
  },
  'a JSON patch': {
    method: 'PATCH',
    path: `${CONFIG_MAPS}/here`,
    body: '[{"op":"add","path":"/data","value":{"b":"c"},"op":"add"}]',
    contentType: 'application/json-patch+json',
    warnings: ['json patch duplicate field "[0].op"'],
    message: /: strict decoding error: json patch duplicate field "\[0\]\.op"$/,
    code: 422,
  },
  'an apply configuration': {
    method: 'PATCH',
    path: `${CONFIG_MAPS}/applied?fieldManager=me`,
    body: cm('"data":{"b":"c","b":"d"}').replace('"a"', '"applied"'),
    contentType: 'application/apply-patch+yaml',
    warnings: ['line 1: key "b" already set in map'],
    message:
      'error strict decoding YAML: error converting YAML to JSON: yaml: unmarshal errors:\n  line 1: key "b" already set in map',
  },
};

for (const [name, { method = 'POST', path, body, contentType, warnings, message, code = 400 }] of Object.entries(
  cases,
)) {
  const send = (fieldValidation: string) =>
    api.call(method, `${path}${path.includes('?') ? '&' : '?'}dryRun=All${fieldValidation}`, {
      body,
      contentType: contentType ?? 'application/json',
    });

  test(`${name}: warned about by default`, async () => {
    for (const query of ['', '&fieldValidation=', '&fieldValidation=Warn']) {
      const response = await send(query);
      assert.ok(response.status < 300, response.text);
      assert.deepEqual(response.warnings, warnings);
    }
  });

  test(`${name}: refused under Strict`, async () => {
    const answer = await send('&fieldValidation=Strict');
    assert.equal(answer.status, code, answer.text);
    if (typeof message === 'string') assert.equal(answer.body.message, message);
    else assert.match(answer.body.message, message);
  });

  test(`${name}: accepted without a warning under Ignore`, async () => {
    const answer = await send('&fieldValidation=Ignore');
    assert.ok(answer.status < 300, answer.text);
    assert.deepEqual(answer.warnings, []);
  });
}
