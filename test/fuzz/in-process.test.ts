/**
 * Random requests to the whole engine in this process: none may crash it, be answered with 500 or block the event loop.
 * SELFSAME_TEST_SEED repeats a run; each failed request is printed as a whole.
 */
import assert from 'node:assert/strict';
import { setTimeout as delay } from 'node:timers/promises';
import { test } from 'node:test';
import type { Resource } from '#engine/registry/resource.ts';
import { defectOf, describeRequest } from '#test/fuzz/defects.ts';
import { startInProcessApi, type FuzzAnswer, type InProcessApi } from '#test/fuzz/in-process-api.ts';
import { plainCreate, randomRequest, type FuzzRequest, type FuzzWorld } from '#test/fuzz/requests.ts';
import { isStall, longestTurn, stallsEachTime } from '#test/fuzz/stalls.ts';
import { FULL_RUN } from '#test/support/full-run.ts';
import { createSeededRandom, type SeededRandom } from '#test/support/seeded-random.ts';

const BUDGET_MS = Number(process.env['SELFSAME_FUZZ_MS'] ?? (FULL_RUN ? 180_000 : 10_000));
/** A new core is started after this many requests, so that earlier changes do not make all later requests fail. */
const REQUESTS_PER_CORE = 300;
/** Few kinds at a time, so that requests meet objects of earlier requests. */
const KINDS_AT_A_TIME = 3;
const NAMES = ['a', 'b', 'c'];
/** The test does not wait longer for requests that wait for a future revision. */
const PATIENCE_MS = 50;
const MAX_DEFECTS = 10;

test('no request crashes the engine, is answered with 500 or blocks the event loop', async (t) => {
  const random = createSeededRandom(t, { fixedSeed: 2026 });
  const found = new Findings();
  const end = performance.now() + BUDGET_MS;
  while (performance.now() < end && found.defects.length < MAX_DEFECTS) {
    const api = await startInProcessApi();
    const resources = someKinds(api, random);
    for (const resource of resources) await prepare(api, resource, random);
    for (let index = 0; index < REQUESTS_PER_CORE && performance.now() < end; index++) {
      await sendRandomRequest(api, { random, resources, read: (path) => readJson(api, path) }, found);
    }
    await api.stop();
  }
  await Promise.all(found.late);
  t.diagnostic(`${found.sent} requests, ${JSON.stringify(Object.fromEntries(found.statuses))}`);
  t.diagnostic(`the longest turn took ${found.longest.toFixed(1)} ms: ${found.longestOf}`);
  assert.deepEqual(found.defects, []);
  // Otherwise most requests would be refused by the first check and test nothing.
  const accepted = [...found.statuses].filter(([status]) => status < 300).reduce((sum, [, count]) => sum + count, 0);
  assert.ok(accepted > found.sent / 10, `only ${accepted} of ${found.sent} were accepted`);
});

class Findings {
  readonly defects: string[] = [];
  readonly statuses = new Map<number, number>();
  readonly late: Promise<void>[] = [];
  sent = 0;
  longest = 0;
  longestOf = '';

  record(request: FuzzRequest, answer: FuzzAnswer, errors: readonly string[]): void {
    this.sent++;
    this.statuses.set(answer.status, (this.statuses.get(answer.status) ?? 0) + 1);
    const defect = defectOf(answer) ?? (errors.length > 0 ? 'an error was logged' : undefined);
    if (defect !== undefined) this.defects.push(`${defect}\n  ${describeRequest(request)}\n  ${errors.join('\n  ')}`);
  }
}

function someKinds(api: InProcessApi, random: SeededRandom): Resource[] {
  return Array.from({ length: KINDS_AT_A_TIME }, () => random.pick(api.core.registry.resources));
}

async function prepare(api: InProcessApi, resource: Resource, random: SeededRandom): Promise<void> {
  for (const name of NAMES) {
    const request = plainCreate(resource, name, random);
    await removeInterfering(api, request, await api.send(request));
  }
}

async function sendRandomRequest(api: InProcessApi, world: FuzzWorld, found: Findings): Promise<void> {
  const request = await randomRequest(world);
  const send = () => Promise.race([api.send(request), delay(PATIENCE_MS, 'late' as const)]);
  const { millis, result } = await longestTurn(send);
  if (millis > found.longest) [found.longest, found.longestOf] = [millis, describeRequest(request).slice(0, 500)];
  if (result === 'late') {
    found.late.push(api.send(request).then((answer) => found.record(request, answer, [])));
    return;
  }
  found.record(request, result, api.takeErrors());
  if (isStall(millis) && (await stallsEachTime(send))) {
    found.defects.push(`blocked the event loop for ${millis.toFixed(0)} ms\n  ${describeRequest(request)}`);
  }
  await removeInterfering(api, request, result);
}

async function readJson(api: InProcessApi, path: string): Promise<unknown> {
  const request = { method: 'GET', url: path, contentType: '', accept: 'application/json', body: Buffer.alloc(0) };
  const { status, contentType, text } = await api.send(request);
  return status === 200 && contentType === 'application/json' ? JSON.parse(text) : undefined;
}

/** Kinds whose objects change the answers to later requests. */
const INTERFERING_KINDS = /\/(\w+webhookconfigurations|validatingadmissionpolic\w+|apiservices)\b/;

async function removeInterfering(
  api: InProcessApi,
  { method, url }: FuzzRequest,
  { status }: FuzzAnswer,
): Promise<void> {
  if (method === 'GET' || status >= 300 || !INTERFERING_KINDS.test(url)) return;
  const collection = url.slice(0, INTERFERING_KINDS.exec(url)!.index + INTERFERING_KINDS.exec(url)![0].length);
  const listed = (await readJson(api, collection)) as { items: { metadata: { name: string } }[] };
  for (const { metadata } of listed.items) {
    const at = { url: `${collection}/${metadata.name}`, accept: 'application/json' };
    const body = Buffer.from('{"metadata":{"finalizers":null}}');
    await api.send({ ...at, method: 'PATCH', contentType: 'application/merge-patch+json', body });
    await api.send({ ...at, method: 'DELETE', contentType: '', body: Buffer.alloc(0) });
  }
}
