/** GET /containerLogs: what a container has written, and with `follow` what it writes. */
import type { ServerResponse } from 'node:http';
import { once } from 'node:events';
import { notFound } from '#kube/api-error.ts';
import type { ContainerLog, EndpointAgent } from '#node/endpoint/endpoint-agent.ts';
import { LineStream, selectLines, untimedRefusal } from '#node/endpoint/log-lines.ts';
import type { LogOptions } from '#node/endpoint/log-options.ts';
import type { EndpointRoute } from '#node/endpoint/route.ts';

type LogRoute = Extract<EndpointRoute, { kind: 'logs' }>;

/** Throws ApiError before anything is sent; afterwards a fault ends the answer. */
export async function serveLogs(
  agent: EndpointAgent,
  { namespace, pod, container }: LogRoute,
  options: LogOptions,
  response: ServerResponse,
): Promise<void> {
  const log = agent.logs(namespace, pod, container);
  if (log === undefined) throw notFound({ group: '', plural: 'pods/log' }, `${namespace}/${pod}/${container}`);
  const refusal = log.timed ? undefined : untimedRefusal(container, options);
  if (refusal !== undefined) throw refusal;
  const ending = new AbortController();
  response.once('close', () => ending.abort());
  const chunks = options.follow ? followed(log, options, ending.signal) : readOnce(log, options);
  let left = options.limitBytes ?? Number.POSITIVE_INFINITY;
  response.setHeader('content-type', 'text/plain');
  for await (const chunk of chunks) {
    if (!response.headersSent) response.flushHeaders();
    const part = chunk.length > left ? chunk.subarray(0, left) : chunk;
    left -= part.length;
    if (part.length > 0 && !response.write(part)) await drained(response, ending.signal);
    if (left <= 0 || response.destroyed) break;
  }
  ending.abort();
  response.end();
}

async function* readOnce(log: ContainerLog, options: LogOptions): AsyncGenerator<Buffer> {
  yield selectLines(await log.read(), log.timed, options);
}

async function* followed(log: ContainerLog, options: LogOptions, signal: AbortSignal): AsyncGenerator<Buffer> {
  const lines = new LineStream(options);
  let first = true;
  for await (const chunk of log.follow(signal)) {
    if (first) yield selectLines(chunk, log.timed, options);
    else yield log.timed ? lines.push(chunk) : chunk;
    first = false;
  }
}

/** Resolves also when the other side went away. */
async function drained(response: ServerResponse, signal: AbortSignal): Promise<void> {
  if (signal.aborted) return;
  await once(response, 'drain', { signal }).catch(() => undefined);
}
