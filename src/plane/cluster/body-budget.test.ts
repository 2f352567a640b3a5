import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, request, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, before, test } from 'node:test';
import { BodyBudget } from '#plane/cluster/body-budget.ts';

/** Receivers of incoming requests, which a test reads when it wants. */
const receivers: ((pair: [IncomingMessage, ServerResponse]) => void)[] = [];
const server = createServer((incoming, response) => receivers.shift()?.([incoming, response]));
before(async () => {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
});
after(() => {
  server.closeAllConnections();
  server.close();
});

function send(body: string, announced = body.length) {
  const received = new Promise<[IncomingMessage, ServerResponse]>((resolve) => receivers.push(resolve));
  const headers = { 'content-length': announced };
  const sent = request({ port: (server.address() as AddressInfo).port, method: 'POST', headers, agent: false });
  sent.on('error', () => {});
  sent.write(body);
  return { received, sent };
}

const budget = () => new BodyBudget({ oneBytes: 100, allBytes: 150 });

test('a body counts until its request is answered', async () => {
  const bodies = budget();
  const [first, answer] = await send('a'.repeat(90)).received;
  assert.equal((await bodies.read(first, answer)).length, 90);
  const [second, refused] = await send('b'.repeat(90)).received;
  await assert.rejects(bodies.read(second, refused), { code: 429 });
  answer.end();
  await once(answer, 'close');
  const [third, late] = await send('c'.repeat(90)).received;
  assert.equal((await bodies.read(third, late)).length, 90);
});

test('a body does not count after its client has disconnected', async () => {
  const bodies = budget();
  for (let i = 0; i < 5; i++) {
    const { received, sent } = send('a'.repeat(80), 100);
    const [incoming, response] = await received;
    const reading = bodies.read(incoming, response);
    sent.destroy();
    await assert.rejects(reading);
  }
  const [incoming, response] = await send('b'.repeat(100)).received;
  assert.equal((await bodies.read(incoming, response)).length, 100);
});
