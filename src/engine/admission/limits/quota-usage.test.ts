/** Tests the pace of counts, and the time of the next count. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseQuota } from '#engine/admission/limits/quota.ts';
import { nextChangeMs, prepareCount } from '#engine/admission/limits/quota-usage.ts';
import { encodeJson } from '#engine/encoding/media-types.ts';
import type { Entry, Store } from '#engine/store/store.ts';

const quota = (hard: Record<string, string>) =>
  parseQuota({ namespace: 'a', name: 'q' }, { apiVersion: 'v1', kind: 'ResourceQuota', metadata: {}, spec: { hard } });

const anEntry = (collection: string, object: object): Entry => ({
  ...{ collection, id: 'a/x', revision: 1 },
  bytes: encodeJson({ metadata: {}, ...object }),
});
const storeOf = (entries: readonly Entry[]) => ({ listLatest: () => entries }) as unknown as Store;

test('large objects are measured at the pace of their bytes', async () => {
  const services = Array.from({ length: 5 }, () =>
    anEntry('services', { metadata: { annotations: { a: 'x'.repeat(50_000) } } }),
  );
  const spent: number[] = [];
  const spend = (units: number) => void spent.push(units);
  const hard = quota({ 'services.nodeports': '5' });
  await prepareCount(storeOf(services), [hard], { collection: 'services', spend });
  assert.deepEqual(
    spent.slice(1),
    services.map(({ bytes }) => bytes.length),
  );
  assert.ok(spent[0]! > 0, 'the count itself is charged');
  assert.equal(prepareCount(storeOf(services), [hard], { collection: 'services', spend }), undefined, 'measured once');
});

test('objects that only have to be counted are not measured', () => {
  const store = { listLatest: () => assert.fail('nothing is read') } as unknown as Store;
  const spend = () => assert.fail('nothing is charged');
  assert.equal(prepareCount(store, [quota({ 'count/pods': '5' })], { collection: 'pods', spend }), undefined);
  assert.equal(nextChangeMs(store, quota({ 'count/pods': '5', 'count/secrets': '1' }), 0), undefined);
});

test('the next change is the earliest end of a grace period, in a list of any length', () => {
  const ending = (second: number) =>
    anEntry('pods', {
      metadata: { deletionTimestamp: `2026-01-01T00:00:0${second}Z`, deletionGracePeriodSeconds: 0 },
      spec: {},
    });
  const [early, late] = [ending(1), ending(5)];
  const pods = [...Array.from({ length: 300_000 }, () => late), early];
  const startMs = Date.parse('2026-01-01T00:00:00Z');
  assert.equal(nextChangeMs(storeOf(pods), quota({ pods: '5' }), startMs), startMs + 1000);
});
