/** The webhook in another process: reviews deletes over HTTPS like the one in the engine's process. */
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { reviewDelete } from './delete-guards.ts';
import { serveJobs } from './jobs.ts';

export interface WebhookServerJob {
  readonly kind: 'start';
  readonly cert: string;
  readonly key: string;
}

serveJobs(({ cert, key }: WebhookServerJob): Promise<number> => {
  const server = createServer({ cert, key, keepAliveTimeout: 60_000 }, (request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const body = Buffer.from(JSON.stringify(reviewDelete(JSON.parse(Buffer.concat(chunks).toString()))));
      response.writeHead(200, { 'content-type': 'application/json', 'content-length': body.length });
      response.end(body);
    });
  });
  return new Promise((resolve) => {
    server.listen(0, '127.0.0.1', () => resolve((server.address() as AddressInfo).port));
  });
});
