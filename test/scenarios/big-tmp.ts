import { startApplyScene, gadget, GADGETS, GADGET, CONFIG_MAP, configMap } from '#test/scenarios/apply-scene.ts';
const api = await startApplyScene();
const C = 'application/merge-patch+json';
const A = 'application/apply-patch+yaml';
const t = async (what: string, f: () => Promise<any>) => { let best = 1e9, r: any; for (let i = 0; i < 3; i++) { const s = performance.now(); r = await f(); best = Math.min(best, performance.now() - s); } console.log(what.padEnd(40), best.toFixed(1), 'ms', r.status, r.body.message ?? '', r.text.length); };
for (const n of [1000, 6000]) {
  const parts = Array.from({ length: n }, (_, k) => ({ name: `p${k}`, value: 'v'.repeat(30), more: 'm'.repeat(30) }));
  await api.call('DELETE', GADGET);
  await t(`create ${n}`, async () => { await api.call('DELETE', GADGET); return api.call('POST', `${GADGETS}?fieldManager=alice`, { body: gadget({ parts }) }); });
  let k = 0;
  await t(`patch size ${n}`, () => api.call('PATCH', `${GADGET}?fieldManager=alice`, { body: { spec: { size: k++ } }, contentType: C }));
  await t(`patch by other ${n}`, () => api.call('PATCH', `${GADGET}?fieldManager=m${k}`, { body: { spec: { size: k++ } }, contentType: C }));
  await t(`patch parts ${n}`, () => api.call('PATCH', `${GADGET}?fieldManager=alice`, { body: { spec: { parts: parts.with(5, { name: 'p5', value: `${k++}`, more: 'x' }) } }, contentType: C }));
  await t(`patch parts by other ${n}`, () => api.call('PATCH', `${GADGET}?fieldManager=n${k}`, { body: { spec: { parts: parts.with(5, { name: 'p5', value: `${k++}`, more: 'x' }) } }, contentType: C }));
  await t(`apply force ${n}`, () => api.call('PATCH', `${GADGET}?fieldManager=bob&force=true`, { body: gadget({ parts: parts.with(5, { name: 'p5', value: `${k++}`, more: 'x' }) }), contentType: A }));
  await t(`apply less ${n}`, () => api.call('PATCH', `${GADGET}?fieldManager=bob&force=true`, { body: gadget({ parts: parts.slice(0, n - 10 * k++) }), contentType: A }));
  await t(`apply conflicts ${n}`, () => api.call('PATCH', `${GADGET}?fieldManager=zoe`, { body: gadget({ parts: parts.map((p) => ({ ...p, value: 'q' })) }), contentType: A }));
  await t(`get ${n}`, () => api.call('GET', GADGET));
  await t(`mf size ${n}`, async () => { const r = await api.call('GET', GADGET); return { ...r, text: JSON.stringify(r.body.metadata.managedFields) }; });
}
const set = Array.from({ length: 20000 }, (_, k) => `${k}-${'x'.repeat(20)}`);
await api.call('DELETE', GADGET);
await t(`create set`, async () => { await api.call('DELETE', GADGET); return api.call('POST', `${GADGETS}?fieldManager=alice`, { body: gadget({ set }) }); });
await t(`apply set`, () => api.call('PATCH', `${GADGET}?fieldManager=bob&force=true`, { body: gadget({ set: set.toReversed() }), contentType: A }));
const odd = Array.from({ length: 20000 }, (_, k) => `${k} "é ${'x'.repeat(20)}`);
await t(`create odd set`, async () => { await api.call('DELETE', GADGET); return api.call('POST', `${GADGETS}?fieldManager=alice`, { body: gadget({ set: odd }) }); });
await t(`get odd`, () => api.call('GET', GADGET));
await t(`patch odd`, () => api.call('PATCH', `${GADGET}?fieldManager=bob`, { body: { spec: { set: odd.slice(1) } }, contentType: C }));
await api.stop();
