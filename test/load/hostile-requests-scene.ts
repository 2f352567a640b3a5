/**
 * The whole plane in a thread, with simulated guests, and one attack after the other. Reports the longest turn of its event
 * loop for each, in CPU time of this thread, which other processes do not lengthen.
 */
import assert from 'node:assert/strict';
import { isMainThread, parentPort } from 'node:worker_threads';
import { attacksIn, type Attack, type HostileRequest } from '#test/load/hostile-requests.ts';
import { longestTurn } from '#test/fuzz/stalls.ts';
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

async function send(plane: VmPlane, request: HostileRequest, surprises: string[]): Promise<void> {
  const { method, url, body, contentType, want } = request;
  const answer = await plane.call(method, url, { body, contentType });
  if (answer.status !== want)
    surprises.push(`${method} ${url.slice(0, 100)}: ${answer.status} ${answer.text.slice(0, 200)}`);
}

async function run(plane: VmPlane, { requests, copies = 1 }: Attack, surprises: string[]): Promise<number> {
  let longest = 0;
  for (const request of requests) {
    const sent = () => Promise.all(Array.from({ length: copies }, () => send(plane, request, surprises)));
    longest = Math.max(longest, (await longestTurn(sent)).millis);
  }
  // Controllers react to what was written.
  return Math.max(longest, (await longestTurn(() => plane.settle())).millis);
}

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
    for (const [name, attack] of Object.entries(attacksIn(namespace))) {
      if ((longest[name] ?? Infinity) < LIMIT_MILLIS) continue;
      longest[name] = Math.min(longest[name] ?? Infinity, await run(plane, attack, surprises));
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
