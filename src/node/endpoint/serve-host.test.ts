import assert from 'node:assert/strict';
import { PassThrough } from 'node:stream';
import type { IncomingMessage } from 'node:http';
import { test } from 'node:test';
import { ApiError } from '#kube/api-error.ts';
import { readBody } from '#node/endpoint/read-body.ts';
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
  'a call without': { body: '', want: 'list {}' },
  'a call with a list of parameters': { body: '[]', want: 400 },
  'a call with no JSON': { body: '{', want: 400 },
};
for (const [sentence, { body, want }] of Object.entries(bodies)) {
  test(`${sentence} is ${typeof want === 'number' ? 'refused' : 'passed on'}`, async () => {
    const asked = serveHost({ host: echo }, { kind: 'host', verb: 'list' }, Buffer.from(body), options);
    assert.equal(await asked.then(({ status }) => status.message, codeOf), want);
  });
}

test('a node without the host API says so', async () => {
  const asked = serveHost({}, { kind: 'host', verb: 'list' }, Buffer.alloc(0), options);
  assert.equal(await asked.then(() => 'answered', codeOf), 404);
});

function aRequest(headers: Record<string, string> = {}): { request: IncomingMessage; body: PassThrough } {
  const body = new PassThrough();
  return { body, request: Object.assign(body, { headers }) as unknown as IncomingMessage };
}

test('a body is read whole', async () => {
  const { request, body } = aRequest();
  body.write('ab');
  body.end('cd');
  assert.equal((await readBody(request, 4)).toString(), 'abcd');
});

test('a body that is too large is refused, whatever it said before', async () => {
  const liar = aRequest();
  liar.body.end('abcde');
  assert.equal(await readBody(liar.request, 4).then(() => 'read', codeOf), 413);
  // Before a byte of it has come.
  const honest = aRequest({ 'content-length': '5' });
  assert.equal(await readBody(honest.request, 4).then(() => 'read', codeOf), 413);
});

test('a body that breaks off is no call', async () => {
  const { request, body } = aRequest();
  body.write('ab');
  body.destroy(new Error('cut'));
  assert.equal(await readBody(request, 4).then(() => 'read', codeOf), 400);
});
