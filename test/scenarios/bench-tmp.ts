import { startApplyScene, gadget, GADGETS } from '#test/scenarios/apply-scene.ts';
import { trackUpdate } from '#engine/managed-fields/track-update.ts';
import { fieldScope } from '#engine/managed-fields/field-scope.ts';
import { storedText, parseStored } from '#engine/managed-fields/stored-owners.ts';
const api = await startApplyScene();
const big = (i: number) => ({ ...gadget({
  color: 'red', size: i, replicas: 3, mode: 'x', atomic: Array.from({ length: 10 }, (_, k) => `item-${k}-${'x'.repeat(20)}`),
  set: Array.from({ length: 8 }, (_, k) => `s${k}`),
  parts: Array.from({ length: 10 }, (_, k) => ({ name: `p${k}`, value: 'v'.repeat(30), more: 'm'.repeat(30) })),
  options: Object.fromEntries(Array.from({ length: 12 }, (_, k) => [`key-${k}`, 'w'.repeat(20)])),
  whole: { a: 'b', c: 'd' }, free: { x: { y: { z: 1 } }, list: [1, 2, 3] },
}), metadata: { name: `g${i}`, labels: { app: 'x', tier: 'y', n: `${i % 7}` }, annotations: { a: 'x'.repeat(100), b: 'y' } } });
console.log('bytes', JSON.stringify(big(1)).length);
const N = Number(process.argv[2] ?? 4000);
const time = async (what: string, n: number, f: (i: number) => unknown) => {
  const t = process.hrtime.bigint();
  for (let i = 0; i < n; i++) { const r = f(i); if (r instanceof Promise) await r; }
  console.log(what.padEnd(40), (Number(process.hrtime.bigint() - t) / 1e3 / n).toFixed(1), 'µs');
};
const C = 'application/merge-patch+json';
const bodies = Array.from({ length: N }, (_, i) => Buffer.from(JSON.stringify(big(i))));
for (let round = 0; round < 3; round++) {
  await time('create e2e', N, (i) => api.call('POST', `${GADGETS}?fieldManager=alice`, { body: bodies[i] }));
  await time('patch e2e tracked', N, (i) => api.call('PATCH', `${GADGETS}/g1?fieldManager=alice`, { body: { spec: { size: i + 10 } }, contentType: C }));
  await time('patch e2e tracked, status', N, (i) => api.call('PATCH', `${GADGETS}/g1/status?fieldManager=ctl`, { body: { status: { replicas: i + 10 } }, contentType: C }));
  await api.ok('PATCH', `${GADGETS}/g2`, { body: { metadata: { managedFields: [{}] } }, contentType: C });
  await time('patch e2e untracked', N, (i) => api.call('PATCH', `${GADGETS}/g2?fieldManager=alice`, { body: { spec: { size: i + 10 } }, contentType: C }));
  await time('get e2e', N, () => api.call('GET', `${GADGETS}/g1`));
  if (round < 2) for (let i = 0; i < N; i++) await api.call('DELETE', `${GADGETS}/g${i}`);
}
const served = (api.core as any).registry?.find?.('golden.local', 'v1', 'gadgets') ?? (globalThis as any).served;
const tracked = JSON.stringify(await api.ok('GET', `${GADGETS}/g1`));
const un = JSON.stringify(await api.ok('GET', `${GADGETS}/g2`));
console.log('stored', tracked.length, un.length);
for (let r = 0; r < 3; r++) {
  await time('parseStored tracked', 20000, () => parseStored(tracked));
  await time('parseStored untracked', 20000, () => parseStored(un));
  const a = parseStored(tracked), b = parseStored(un);
  await time('storedText tracked', 20000, () => storedText(a));
  await time('storedText untracked', 20000, () => storedText(b));
}
await api.stop();
