import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readOptions, type VerbRequestOptions } from '#subresources/read-options.ts';
import type { SubresourceVerb } from '#api/verbs/verb.ts';

const good: Record<string, { verb: SubresourceVerb; body: string; query?: string; want: VerbRequestOptions }> = {
  'no body': { verb: 'start', body: '', want: { dryRun: false } },
  'an empty object': { verb: 'stop', body: '{}', want: { dryRun: false } },
  null: { verb: 'stop', body: 'null', want: { dryRun: false } },
  'a paused start': { verb: 'start', body: '{"paused":true}', want: { dryRun: false, paused: true } },
  YAML: { verb: 'stop', body: 'gracePeriod: 0\n', want: { dryRun: false, gracePeriod: 0 } },
  'a forced restart': {
    verb: 'restart',
    body: '{"gracePeriodSeconds":0,"kind":"RestartOptions"}',
    want: { dryRun: false, gracePeriodSeconds: 0 },
  },
  'a dry run': { verb: 'pause', body: '{"dryRun":["All"]}', want: { dryRun: true } },
  'a dry run by the query': { verb: 'pause', body: '', query: 'dryRun=All', want: { dryRun: true } },
  'no dry run': { verb: 'pause', body: '{"dryRun":[]}', want: { dryRun: false } },
  'a node selector for a migration': {
    verb: 'migrate',
    body: '{"addedNodeSelector":{"zone":"b"}}',
    want: { dryRun: false, addedNodeSelector: { zone: 'b' } },
  },
  'the claim of persistent state': {
    verb: 'adoptstate',
    body: '{"claimName":"a","claimUID":"u"}',
    want: { dryRun: false, stateClaim: { name: 'a', uid: 'u' } },
  },
  'a body with fields of other verbs': { verb: 'pause', body: '{"gracePeriod":"x"}', want: { dryRun: false } },
};
for (const [name, { verb, body, query = '', want }] of Object.entries(good)) {
  test(`reads ${name}`, () => assert.deepEqual(readOptions(verb, body, new URLSearchParams(query)), want));
}

const bad: Record<string, { verb: SubresourceVerb; body: string; message: RegExp }> = {
  'broken JSON': { verb: 'start', body: '{', message: /^Can not unmarshal Request body to struct, error: / },
  'a list': { verb: 'start', body: '[]', message: /the body is not an object/ },
  'a string for a boolean': {
    verb: 'start',
    body: '{"paused":"yes"}',
    message: /cannot unmarshal string into Go struct field StartOptions.paused of type bool/,
  },
  'a fraction of a second': {
    verb: 'stop',
    body: '{"gracePeriod":0.5}',
    message: /Go struct field StopOptions.gracePeriod of type int64/,
  },
  'a selector that is a list': {
    verb: 'migrate',
    body: '{"addedNodeSelector":[]}',
    message: /cannot unmarshal array into Go struct field MigrateOptions.addedNodeSelector of type map/,
  },
  'a label that is a number': {
    verb: 'migrate',
    body: '{"addedNodeSelector":{"zone":1}}',
    message: /cannot unmarshal number into Go struct field MigrateOptions.addedNodeSelector of type string/,
  },
  'an adoption without a claim': {
    verb: 'adoptstate',
    body: '{"claimUID":"u"}',
    message: /^claimName: Required value/,
  },
  'a release without the uid of the claim': {
    verb: 'releasestate',
    body: '{"claimName":"a"}',
    message: /^claimUID: Required/,
  },
  'a claim name that is a number': {
    verb: 'releasestate',
    body: '{"claimName":1,"claimUID":"u"}',
    message: /cannot unmarshal number into Go struct field StateClaimOptions.claimName of type string/,
  },
  'an unknown dry run': { verb: 'stop', body: '{"dryRun":["Some"]}', message: /Unsupported value: "Some"/ },
  'a dry run that is not a list': { verb: 'stop', body: '{"dryRun":"All"}', message: /dryRun is not a list/ },
};
for (const [name, { verb, body, message }] of Object.entries(bad)) {
  test(`refuses ${name}`, () => {
    assert.throws(() => readOptions(verb, body, new URLSearchParams()), { code: 400, message });
  });
}
