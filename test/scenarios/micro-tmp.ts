import { startApplyScene, gadget, GADGETS } from '#test/scenarios/apply-scene.ts';
import { trackUpdate } from '#engine/managed-fields/track-update.ts';
import { fieldScope } from '#engine/managed-fields/field-scope.ts';
import { storedText, parseStored } from '#engine/managed-fields/stored-owners.ts';
import { isSameMetadata } from '#engine/handlers/own-fields.ts';
import { deepClone } from '#kube/deep.ts';
import { applyMergePatch } from '#kube/merge-patch.ts';
const api = await startApplyScene();
const big = (i: number) => ({ ...gadget({
  color: 'red', size: i, replicas: 3, mode: 'x', atomic: Array.from({ length: 14 }, (_, k) => `item-${k}-${'x'.repeat(20)}`),
  set: Array.from({ length: 8 }, (_, k) => `s${k}`),
  parts: Array.from({ length: 10 }, (_, k) => ({ name: `p${k}`, value: 'v'.repeat(40), more: 'm'.repeat(40) })),
  options: Object.fromEntries(Array.from({ length: 12 }, (_, k) => [`key-${k}`, 'w'.repeat(20)])),
  whole: { a: 'b', c: 'd' }, free: { x: { y: { z: 1 } }, list: [1, 2, 3] },
}), metadata: { name: `g${i}`, labels: { app: 'x', tier: 'y', n: `${i % 7}` }, annotations: { a: 'x'.repeat(100), b: 'y' } } });
const best = new Map<string, number>();
const time = (what: string, f: (i: number) => unknown, n = 2000) => {
  for (let r = 0; r < 12; r++) {
    const t = process.hrtime.bigint();
    for (let i = 0; i < n; i++) f(i);
    const us = Number(process.hrtime.bigint() - t) / 1e3 / n;
    best.set(what, Math.min(best.get(what) ?? 1e9, us));
  }
};
const served = api.core.registry.find('golden.local', 'v1', 'gadgets')!;
const scope = () => fieldScope(served, '');
const writer = (nowMs: number, manager = 'alice') => ({ manager, apiVersion: 'golden.local/v1', subresource: '', nowMs });
const texts = Array.from({ length: 2000 }, (_, i) => JSON.stringify(big(i)));
const objects = texts.map((t) => JSON.parse(t));
time('create: track', (i) => { delete objects[i].metadata.managedFields; trackUpdate(objects[i], undefined, writer(1e12 + i), scope()); });
const shapes = objects.map((o, i) => { const c = structuredClone(o); delete c.metadata.managedFields; c.spec.options[`own-${i}`] = 'x'; return c; });
time('create: track, each its own shape', (i) => { delete shapes[i].metadata.managedFields; trackUpdate(shapes[i], undefined, writer(1e12 + i), scope()); });
const made = await api.ok('POST', `${GADGETS}?fieldManager=alice`, { body: big(1) });
const tracked = JSON.stringify(made);
const two = JSON.stringify(await api.merge('bob', `${GADGETS}/g1/status`, { status: { phase: 'a' } }));
const { managedFields: _, ...md } = made.metadata;
const un = JSON.stringify({ ...made, metadata: md });
for (const [what, text] of [['none', un], ['1 owner', tracked], ['2 owners', two]] as const) {
  time(`parseStored ${what}`, () => parseStored(text));
  const object = parseStored(text);
  time(`storedText ${what}`, (i) => { object.metadata.resourceVersion = String(i); return storedText(object); });
  const { managedFields, ...metadata } = object.metadata;
  if (managedFields) {
    time(`patch: track ${what}`, (i) => {
      const copy = deepClone({ ...object, metadata });
      const next = applyMergePatch(copy, { spec: { size: i } }) as any;
      trackUpdate(next, { old: object, base: copy }, writer(1e12 + i * 1000), scope());
      isSameMetadata(next.metadata, object.metadata);
    });
    time(`patch: same without track ${what}`, (i) => {
      const copy = deepClone({ ...object, metadata });
      const next = applyMergePatch(copy, { spec: { size: i } }) as any;
      return next;
    });
  }
}
for (const [k, v] of best) console.log(k.padEnd(44), v.toFixed(2), 'µs');
await api.stop();
