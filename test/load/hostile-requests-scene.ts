/**
 * The whole plane in a thread, with simulated guests, and one attack after the other. Reports the longest turn of its event
 * loop for each, in CPU time of this thread, which other processes do not lengthen.
 */
import assert from 'node:assert/strict';
import { isMainThread, parentPort } from 'node:worker_threads';
import { attacksIn, preparationOf, type Attack, type HostileRequest } from '#test/load/hostile-requests.ts';
import { longestTurn } from '#test/fuzz/stalls.ts';
import type { StreamResponse } from '#engine/request/request.ts';
import { ADMIN } from '#test/support/test-api.ts';
import { VmPlane } from '#test/support/vm-plane.ts';

export interface RequestsReport {
  /** The longest turn of each attack, its lowest of several runs, in milliseconds. */
  readonly longest: Readonly<Record<string, number>>;
  /** Answers that differ from the expected ones. */
  readonly surprises: readonly string[];
  /** The time to compare two objects of 50,000 fields, which shows the speed of this machine now. */
  readonly referenceMillis: number;
}

/** A collection of garbage may fall into any turn; a hostile request blocks the loop in every run. */
const RUNS = 3;
const LIMIT_MILLIS = 60;

/** The parts of an attack that go from one request to the next. */
interface Course {
  readonly plane: VmPlane;
  readonly surprises: string[];
  /** The revision before the objects of the preparation existed. */
  readonly oldRevision: number;
  /** Ends the open watches. */
  readonly ends: (() => void)[];
}

/** Sends a request without reading its answer, which is not work of the server. */
async function send(course: Course, request: HostileRequest): Promise<void> {
  const { plane, surprises, oldRevision } = course;
  const { method, body, contentType, accept = 'application/json', want, events } = request;
  const url = request.url.replace('=OLD', `=${oldRevision}`);
  const [path = '', query = ''] = url.split('?', 2);
  const response = await plane.server.api.core.handler({
    ...{ method, path, query: new URLSearchParams(query), user: ADMIN, userAgent: 'test', contentType, accept },
    body: async () => body,
    signal: new AbortController().signal,
  });
  const note = (text: string) => surprises.push(`${method} ${url.slice(0, 100)}: ${text}`);
  if (response.status !== want)
    note(`${response.status} ${'body' in response ? String(response.body).slice(0, 200) : ''}`);
  else if ('stream' in response && events !== undefined) {
    const missing = await receive(response, events, course);
    if (missing > 0) note(`${missing} events are missing`);
  }
}

/** Reads a watch until it has sent this many events, or ends. Returns the number of missing events. */
async function receive({ stream }: StreamResponse, events: number, { ends }: Course): Promise<number> {
  let missing = events;
  await new Promise<void>((resolve) => {
    const stop = stream({
      write(chunk) {
        for (let at = chunk.indexOf(10); at >= 0; at = chunk.indexOf(10, at + 1)) missing--;
        if (missing <= 0) resolve();
      },
      bufferedBytes: 0,
      onDrain: (fn) => void setImmediate(fn),
      end: resolve,
    });
    ends.push(stop);
  });
  return missing;
}

async function run(course: Course, { requests }: Attack): Promise<number> {
  let longest = 0;
  for (const request of requests) {
    const { copies = 1 } = request;
    const sent = () => Promise.all(Array.from({ length: copies }, () => send(course, request)));
    longest = Math.max(longest, (await longestTurn(sent)).millis);
  }
  // Controllers react to what was written.
  longest = Math.max(longest, (await longestTurn(() => course.plane.settle())).millis);
  for (const end of course.ends.splice(0)) end();
  return longest;
}

/** Creates the objects of the preparation. Returns the revision before them. */
async function prepare(course: Omit<Course, 'oldRevision'>, namespace: string): Promise<number> {
  const requests = preparationOf(namespace);
  const oldRevision = course.plane.server.api.store.revision;
  for (let start = 0; start < requests.length; start += PREPARED_AT_ONCE) {
    const batch = requests.slice(start, start + PREPARED_AT_ONCE);
    await Promise.all(batch.map((request) => send({ ...course, oldRevision }, request)));
  }
  await course.plane.settle();
  return oldRevision;
}

const PREPARED_AT_ONCE = 50;

async function createNamespace(plane: VmPlane, name: string): Promise<void> {
  const body = { apiVersion: 'v1', kind: 'Namespace', metadata: { name } };
  const { status } = await plane.call('POST', '/api/v1/namespaces', { body });
  assert.equal(status, 201);
  await plane.settle();
}

async function runAll(): Promise<RequestsReport> {
  const plane = new VmPlane({ nodes: 1 });
  await plane.start();
  const longest: Record<string, number> = {};
  const surprises: string[] = [];
  for (let tries = 0; tries < RUNS; tries++) {
    const namespace = `hostile-${tries}`;
    await createNamespace(plane, namespace);
    const course = { plane, surprises, ends: [], oldRevision: 0 };
    const attacks = Object.entries(attacksIn(namespace)).filter(
      ([name]) => !((longest[name] ?? Infinity) < LIMIT_MILLIS),
    );
    const needsObjects = attacks.some(([, { isPrepared }]) => isPrepared === true);
    const oldRevision = needsObjects ? await prepare(course, namespace) : 0;
    for (const [name, attack] of attacks) {
      longest[name] = Math.min(longest[name] ?? Infinity, await run({ ...course, oldRevision }, attack));
    }
  }
  await plane.stop();
  return { longest, surprises, referenceMillis: referenceMillis() };
}

function referenceMillis(): number {
  const before = process.threadCpuUsage();
  const text = JSON.stringify(Object.fromEntries(Array.from({ length: 50_000 }, (_, index) => [`k${index}`, 'x'])));
  assert.deepEqual(JSON.parse(text), JSON.parse(text));
  const { user, system } = process.threadCpuUsage(before);
  return (user + system) / 1000;
}

if (!isMainThread) parentPort?.postMessage(await runAll());
