import assert from 'node:assert/strict';
import { PassThrough } from 'node:stream';
import type { IncomingMessage } from 'node:http';
import { test } from 'node:test';
import { ApiError } from '#kube/api-error.ts';
import { readBodyUpTo } from '#node/endpoint/read-body-up-to.ts';
import { serveHost } from '#node/endpoint/serve-host.ts';

const options = { signal: new AbortController().signal };
const echo = {
  call: async (verb: string, parameters: object) => ({
    status: { code: 0, message: `${verb} ${JSON.stringify(parameters)}` },
  }),
};
const codeOf = (error: unknown) => (error instanceof ApiError ? error.code : error);

const bodies: Record<string, { body: string; want: string | number }> = {
  'a call with parameters': { body: '{"vmList":["a"]}', want: 'list {"vmList":["a"]}' },
  'a call without parameters': { body: '', want: 'list {}' },
  'a call with a list of parameters': { body: '[]', want: 400 },
  'a call with invalid JSON': { body: '{', want: 400 },
};
for (const [sentence, { body, want }] of Object.entries(bodies)) {
  test(`${sentence} is ${typeof want === 'number' ? 'refused' : 'passed on'}`, async () => {
    const answer = serveHost({ host: echo }, { kind: 'host', verb: 'list' }, Buffer.from(body), options);
    assert.equal(await answer.then(({ status }) => status.message, codeOf), want);
  });
}

test('a node without the host API responds with 404', async () => {
  const answer = serveHost({}, { kind: 'host', verb: 'list' }, Buffer.alloc(0), options);
  assert.equal(await answer.then(() => 'answered', codeOf), 404);
});

function aRequest(headers: Record<string, string> = {}): { request: IncomingMessage; body: PassThrough } {
  const body = new PassThrough();
  return { body, request: Object.assign(body, { headers }) as unknown as IncomingMessage };
}

test('reads a whole body', async () => {
  const { request, body } = aRequest();
  body.write('ab');
  body.end('cd');
  assert.equal((await readBodyUpTo(request, 4)).toString(), 'abcd');
});

test('refuses a body that is too large, with or without content-length', async () => {
  const undeclared = aRequest();
  undeclared.body.end('abcde');
  assert.equal(await readBodyUpTo(undeclared.request, 4).then(() => 'read', codeOf), 413);
  // Refused before any byte has arrived.
  const declared = aRequest({ 'content-length': '5' });
  assert.equal(await readBodyUpTo(declared.request, 4).then(() => 'read', codeOf), 413);
});

test('refuses an incomplete body', async () => {
  const { request, body } = aRequest();
  body.write('ab');
  body.destroy(new Error('cut'));
  assert.equal(await readBodyUpTo(request, 4).then(() => 'read', codeOf), 400);
});
