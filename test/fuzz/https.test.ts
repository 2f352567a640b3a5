/** Random requests to the real program over HTTP/1.1 and HTTP/2: every request is answered, none with 500. */
import assert from 'node:assert/strict';
import { setTimeout as delay } from 'node:timers/promises';
import { test } from 'node:test';
import type { ClusterAccess } from '#client/kubeconfig.ts';
import { builtInResources } from '#engine/registry/kinds/all.ts';
import { resourcesOfCrd } from '#engine/custom-kinds/custom-resource.ts';
import { defectOf, describeRequest } from '#test/fuzz/defects.ts';
import { initialRequests, type FuzzAnswer } from '#test/fuzz/in-process-api.ts';
import { plainCreate, randomRequest, type FuzzRequest, type FuzzWorld } from '#test/fuzz/requests.ts';
import { RICH_CRD } from '#test/fuzz/rich-kind.ts';
import { FULL_RUN } from '#test/support/full-run.ts';
import { sendHttp1Request, sendHttp2Request, openHttp2Session, type RawResponse } from '#test/support/raw-https.ts';
import { createSeededRandom } from '#test/support/seeded-random.ts';
import { startServer, createTemporaryDir } from '#test/support/server-process.ts';

const BUDGET_MS = FULL_RUN ? 60_000 : 4000;
/** Much longer than the longest wait that the API itself allows. */
const PATIENCE_MS = 15_000;
const MAX_DEFECTS = 10;

/** Kinds whose objects would change the answers to other requests, their namespace, or the rights of our components. */
const INTERFERING_KINDS = /webhookconfigurations|admissionpolic|apiservices|namespaces|roles|rolebindings/;
/** Requests without an end; the in-process test covers them. */
const ENDLESS = /[?&](watch|follow)=/;
const METHOD = /^[A-Za-z]+$/;

type Send = (request: FuzzRequest) => Promise<FuzzAnswer>;

test('the program answers every request over HTTP/1.1 and HTTP/2, and none with 500', async (t) => {
  const random = createSeededRandom(t, { fixedSeed: 2026 });
  const server = await startServer(t, { dataDir: createTemporaryDir(t) });
  const access = server.access();
  const session = openHttp2Session(t, access);
  const over1: Send = (request) => answerInTime(sendHttp1Request(access, rawOf(request, access)), request);
  const over2: Send = (request) => answerInTime(sendHttp2Request(session, access, rawOf(request, access)), request);
  await prepare(over2);

  const resources = [
    ...builtInResources.filter(({ plural }) => !INTERFERING_KINDS.test(plural)),
    ...resourcesOfCrd(RICH_CRD),
  ];
  const world: FuzzWorld = { random, resources, read: (path) => readJson(over2, path) };
  for (const resource of resources) await over2(plainCreate(resource, 'a', random));

  const defects: string[] = [];
  let sent = 0;
  const end = performance.now() + BUDGET_MS;
  while (performance.now() < end && defects.length < MAX_DEFECTS) {
    const request = await randomRequest(world);
    if (ENDLESS.test(request.url) || !METHOD.test(request.method)) continue;
    sent++;
    const answer = await (random.chance(0.3) ? over1 : over2)(request);
    const defect = defectOf(answer);
    if (defect !== undefined) defects.push(`${defect}\n  ${describeRequest(request)}`);
  }
  t.diagnostic(`${sent} requests`);
  assert.deepEqual(defects, []);
  assert.ok(sent > 50, `only ${sent} requests were sent`);

  const { status } = await over1({ method: 'GET', url: '/readyz', contentType: '', accept: '', body: Buffer.alloc(0) });
  assert.equal(status, 200);
  const { code, stderr } = await server.kill('SIGTERM');
  assert.equal(code, 0, stderr);
  // Controllers may log objects that were deleted meanwhile, and retry; requests must not fail because of an internal error.
  assert.doesNotMatch(stderr, /Request failed|Cannot send a response|unhandled|"level":60/);
});

function rawOf({ method, url, contentType, accept, body }: FuzzRequest, { server }: ClusterAccess) {
  const headers: Record<string, string> = { 'user-agent': 'fuzz/1', host: new URL(server).host };
  if (contentType !== '') headers['content-type'] = contentType;
  if (accept !== '') headers['accept'] = accept;
  const hasBody = method !== 'GET' && method !== 'HEAD';
  return { method, path: url, headers, ...(hasBody ? { body } : {}) };
}

async function answerInTime(answer: Promise<RawResponse>, request: FuzzRequest): Promise<FuzzAnswer> {
  const late = delay(PATIENCE_MS, undefined, { ref: false });
  const got = await Promise.race([answer, late]);
  if (got === undefined) throw new Error(`no answer to ${describeRequest(request)}`);
  return { status: got.status, contentType: got.headers['content-type'] ?? '', text: got.text };
}

async function prepare(send: Send): Promise<void> {
  for (const [url, body] of initialRequests()) {
    // The controllers of the program do that.
    if (url.endsWith('/status') || url.endsWith('/serviceaccounts')) continue;
    const contentType = 'application/json';
    const { status, text } = await send({
      method: 'POST',
      url,
      contentType,
      accept: '',
      body: Buffer.from(JSON.stringify(body)),
    });
    assert.equal(status, 201, text);
  }
}

async function readJson(send: Send, url: string): Promise<unknown> {
  const { status, text } = await send({
    method: 'GET',
    url,
    contentType: '',
    accept: 'application/json',
    body: Buffer.alloc(0),
  });
  return status === 200 ? JSON.parse(text) : undefined;
}
