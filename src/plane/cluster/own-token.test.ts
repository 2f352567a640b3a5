import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Client } from '#client/client.ts';
import { FakeClock } from '#lib/testing/fake-clock.ts';
import { timestamp } from '#lib/clock.ts';
import { silentLog } from '#lib/log.ts';
import { keepOwnToken } from '#plane/cluster/own-token.ts';

const HOUR = 3_600_000;
const tokenOf = (account: string, count: number) => {
  const claims = { sub: `system:serviceaccount:selfsame-system:${account}`, count };
  return `x.${Buffer.from(JSON.stringify(claims)).toString('base64url')}.y`;
};

/** Returns the number of token requests in a day if tokens are valid for that number of hours. */
async function renewals(
  hours: number,
  account = 'selfsame-controllers',
  fails: readonly number[] = [],
): Promise<number> {
  const clock = new FakeClock();
  let [requests, file] = [0, tokenOf(account, 0)];
  const create = async () => {
    if (fails.includes(++requests)) throw new Error('away');
    const expirationTimestamp = timestamp(clock.now() + hours * HOUR);
    return { status: { token: tokenOf(account, requests), expirationTimestamp } };
  };
  const stopping = new AbortController();
  const access = { server: 'https://x', namespace: 'd', insecureSkipTlsVerify: false, tokenFile: '/t' };
  const done = keepOwnToken(
    {
      access,
      client: { create } as unknown as Client,
      clock,
      log: silentLog,
      read: async () => file,
      write: async (_, text) => void (file = text),
    },
    stopping,
  );
  await clock.advance(24 * HOUR - 1);
  stopping.abort();
  await done;
  return requests;
}

test('a token is renewed twice a day', async () => assert.equal(await renewals(720), 2));
test('a token with a shorter lifetime than requested is renewed at half of it', async () => {
  assert.equal(await renewals(1), 48);
});
test('a token of another account is not renewed', async () => assert.equal(await renewals(720, 'other'), 0));
test('a failed renewal is retried soon', async () => {
  assert.equal(await renewals(720, 'selfsame-controllers', [1, 2]), 4);
});
