/** GET /containerLogs: the log of a container; with `follow` also new output. */
import type { ServerResponse } from 'node:http';
import { once } from 'node:events';
import { notFound } from '#kube/api-error.ts';
import type { ContainerLog, EndpointAgent } from '#node/endpoint/endpoint-agent.ts';
import { LineStream, selectLines, refuseUntimed } from '#node/endpoint/log-lines.ts';
import type { ContainerLogOptions } from '#node/endpoint/log-options.ts';
import type { EndpointRoute } from '#node/endpoint/route.ts';

type LogRoute = Extract<EndpointRoute, { kind: 'logs' }>;

/** Throws ApiError before anything is sent. A later error ends the response. */
export async function serveLogs(
  agent: EndpointAgent,
  { namespace, pod, container }: LogRoute,
  options: ContainerLogOptions,
  response: ServerResponse,
): Promise<void> {
  const log = agent.logs(namespace, pod, container);
  if (log === undefined) throw notFound({ group: '', plural: 'pods/log' }, `${namespace}/${pod}/${container}`);
  const refusal = log.timed ? undefined : refuseUntimed(container, options);
  if (refusal !== undefined) throw refusal;
  const closing = new AbortController();
  response.once('close', () => closing.abort());
  const chunks = options.follow ? followLog(log, options, closing.signal) : readOnce(log, options);
  let remainingBytes = options.limitBytes ?? Number.POSITIVE_INFINITY;
  response.setHeader('content-type', 'text/plain');
  for await (const chunk of chunks) {
    if (!response.headersSent) response.flushHeaders();
    const part = chunk.length > remainingBytes ? chunk.subarray(0, remainingBytes) : chunk;
    remainingBytes -= part.length;
    if (part.length > 0 && !response.write(part)) await waitForDrain(response, closing.signal);
    if (remainingBytes <= 0 || response.destroyed) break;
  }
  closing.abort();
  response.end();
}

async function* readOnce(log: ContainerLog, options: ContainerLogOptions): AsyncGenerator<Buffer> {
  yield selectLines(await log.read(), log.timed, options);
}

async function* followLog(
  log: ContainerLog,
  options: ContainerLogOptions,
  signal: AbortSignal,
): AsyncGenerator<Buffer> {
  const lines = new LineStream(options);
  let first = true;
  for await (const chunk of log.follow(signal)) {
    if (first) yield selectLines(chunk, log.timed, options);
    else yield log.timed ? lines.push(chunk) : chunk;
    first = false;
  }
}

/** Resolves also when the client disconnects. */
async function waitForDrain(response: ServerResponse, signal: AbortSignal): Promise<void> {
  if (signal.aborted) return;
  await once(response, 'drain', { signal }).catch(() => undefined);
}
