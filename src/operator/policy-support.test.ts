import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Reader } from '#client/client.ts';
import { errorFromResponse } from '#client/transport.ts';
import { systemClock, type Clock } from '#lib/clock.ts';
import { silentLog } from '#lib/log.ts';
import { findPolicySupport } from '#operator/policy-support.ts';

/** The codes of successive responses. */
const answers: Record<string, { codes: readonly number[]; want: 'served' | 'missing' | undefined }> = {
  'a server that lists policies serves them': { codes: [200], want: 'served' },
  'a server that responds with 404 does not serve them': { codes: [404], want: 'missing' },
  'other errors are retried': { codes: [503, 500, 403, 200], want: 'served' },
  'a 404 after errors means that policies are missing': { codes: [503, 404], want: 'missing' },
  'retries until the abort': { codes: [503, 503], want: undefined },
};

for (const [name, { codes, want }] of Object.entries(answers)) {
  test(name, async () => {
    const left = [...codes];
    const ending = new AbortController();
    const client: Pick<Reader, 'list'> = {
      list: async () => {
        const code = left.shift() ?? 503;
        if (left.length === 0 && want === undefined) ending.abort();
        // Kubernetes responds without a Status object.
        if (code !== 200) throw errorFromResponse(code, '404 page not found\n');
        return { apiVersion: 'v1', kind: 'List', metadata: { resourceVersion: '1' }, items: [] };
      },
    };
    const delays: number[] = [];
    const clock: Clock = {
      ...systemClock,
      after(ms, fn) {
        delays.push(ms);
        queueMicrotask(fn);
        return () => undefined;
      },
    };
    assert.equal(await findPolicySupport({ client, clock, log: silentLog, signal: ending.signal }), want);
    assert.deepEqual(left, []);
    assert.deepEqual(delays, [200, 400, 800].slice(0, want === undefined ? 1 : codes.length - 1));
  });
}
