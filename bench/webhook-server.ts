/** The webhook of another process: takes AdmissionReviews over HTTPS and answers as the one in the engine's process. */
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { answerReview } from './delete-guards.ts';
import { answerJobs } from './jobs.ts';

export interface WebhookServerJob {
  readonly kind: 'start';
  readonly cert: string;
  readonly key: string;
}

answerJobs(({ cert, key }: WebhookServerJob): Promise<number> => {
  const server = createServer({ cert, key, keepAliveTimeout: 60_000 }, (request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const answer = Buffer.from(JSON.stringify(answerReview(JSON.parse(Buffer.concat(chunks).toString()))));
      response.writeHead(200, { 'content-type': 'application/json', 'content-length': answer.length });
      response.end(answer);
    });
  });
  return new Promise((resolve) => {
    server.listen(0, '127.0.0.1', () => resolve((server.address() as AddressInfo).port));
  });
});
