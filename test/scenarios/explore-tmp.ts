import { CONFIG_MAP, configMap, GADGET, GADGETS, gadget, gadgets, owners, startApplyScene } from '#test/scenarios/apply-scene.ts';
const api = await startApplyScene();
const show = (what: string, o: any) => console.log(what, JSON.stringify(o?.metadata ? { o: owners(o), spec: o.spec, data: o.data, status: o.status } : o));
const CRD = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions/gadgets.golden.local';
async function step(name: string, f: () => Promise<void>) { try { await f(); } catch (e) { console.log('ERR', name, (e as Error).stack?.slice(0, 600)); } await api.call('DELETE', GADGET); await api.call('DELETE', CONFIG_MAP); }
await step('json patch into fieldsV1', async () => {
  await api.ok('POST', '/api/v1/namespaces/ns/configmaps?fieldManager=alice', { body: configMap({ k: 'v', l: 'w' }) });
  const r = await api.call('PATCH', CONFIG_MAP, { body: [{ op: 'remove', path: '/metadata/managedFields/0/fieldsV1/f:data/f:k' }], contentType: 'application/json-patch+json' });
  show('jsonpatch fieldsV1 ' + r.status, r.body);
  const r2 = await api.call('PATCH', CONFIG_MAP, { body: [{ op: 'replace', path: '/metadata/managedFields/0/manager', value: 'zed' }], contentType: 'application/json-patch+json' });
  show('jsonpatch manager ' + r2.status, r2.body);
  const r3 = await api.call('PATCH', CONFIG_MAP, { body: [{ op: 'remove', path: '/metadata/managedFields' }], contentType: 'application/json-patch+json' });
  show('jsonpatch rm ' + r3.status, r3.body);
  const r4 = await api.call('PATCH', CONFIG_MAP, { body: [{ op: 'add', path: '/metadata/managedFields/-', value: {manager:'x', operation:'Update', apiVersion:'v1', fieldsType:'FieldsV1'} }], contentType: 'application/json-patch+json' });
  show('jsonpatch add no fields ' + r4.status, r4.body);
});
await step('granular to atomic', async () => {
  await api.applied('alice', GADGET, gadget({ set: ['a'], options: { a: '1' }, parts: [{ name: 'a', value: '1' }] }));
  await api.merge('carol', GADGET, { spec: { free: { x: 1 } } });
  const v = structuredClone(gadgets.spec.versions) as any;
  for (const x of v) { delete x.schema.openAPIV3Schema.properties.spec.properties.set['x-kubernetes-list-type']; x.schema.openAPIV3Schema.properties.spec.properties.options['x-kubernetes-map-type'] = 'atomic'; }
  await api.merge('x', CRD, { spec: { versions: v } }); await api.settle();
  const r = await api.apply('bob', GADGET, gadget({ set: ['b'], options: { b: '2' } }));
  show('g2a conflict ' + r.status, r.body);
  const u = await api.merge('dave', GADGET, { spec: { set: ['c'] } });
  show('g2a update', u);
  await api.merge('x', CRD, { spec: { versions: gadgets.spec.versions } }); await api.settle();
});
await step('nulls', async () => {
  const a = await api.apply('alice', GADGET, gadget({ color: null, options: null, parts: null, size: 1 }));
  show('null apply', a.body);
  const b = await api.apply('bob', GADGET, gadget({ color: 'x', options: { a: 'b' } }));
  show('null then value', b.body);
});
await step('empty obj', async () => {
  const a = await api.apply('alice', GADGET, gadget({ options: {}, parts: [], set: [], whole: {}, atomic: [] }));
  show('empties', a.body);
  const b = await api.apply('alice', GADGET, gadget({}));
  show('gone', b.body);
  const c = await api.apply('alice', GADGET, gadget(undefined));
  show('gone2', c.body);
});
await step('protos', async () => {
  const raw = '{"apiVersion":"golden.local/v1","kind":"Gadget","metadata":{"name":"a","labels":{"constructor":"x"}},"spec":{"options":{"__proto__":"1","constructor":"2","toString":"3","hasOwnProperty":"4"},"free":{"__proto__":{"a":1},"valueOf":{"b":1}}}}';
  const a = await api.apply('alice', GADGET, raw);
  show('proto', a.body);
  const b = await api.merge('bob', GADGET, { spec: { options: { constructor: '9' } } });
  show('proto2', b);
  const c = await api.apply('alice', GADGET, gadget({ options: { a: 'b' } }));
  show('proto3', c.body);
});
await step('generateName', async () => {
  const body = { ...gadget({ color: 'a' }), metadata: { generateName: 'x-' } };
  show('gen', await api.ok('POST', GADGETS, { body }));
});
await step('create with managedFields', async () => {
  const made = await api.ok('POST', GADGETS + '?fieldManager=alice', { body: gadget({ color: 'a' }) });
  await api.call('DELETE', GADGET);
  const { resourceVersion, uid, ...metadata } = made.metadata;
  show('re-create', await api.ok('POST', GADGETS + '?fieldManager=bob', { body: { ...made, metadata } }));
});
await step('status update by apply manager then main apply', async () => {
  await api.applied('alice', GADGET, gadget({ color: 'a' }));
  await api.merge('alice', GADGET + '/status', { status: { phase: 'x' } });
  show('both', await api.applied('alice', GADGET, gadget({ size: 1 })));
});
await step('finalizers', async () => {
  const a = await api.applied('alice', GADGET, { ...gadget({ color: 'a' }), metadata: { name: 'a', finalizers: ['a.b/c'], ownerReferences: [{ apiVersion: 'v1', kind: 'Pod', name: 'x', uid: 'u1' }] } });
  show('fin', a);
  const b = await api.merge('bob', GADGET, { metadata: { finalizers: ['a.b/c', 'd.e/f'] } });
  show('fin2', b);
  const c = await api.applied('alice', GADGET, gadget({ color: 'a' }));
  show('fin3', c); console.log(JSON.stringify(c.metadata.finalizers), JSON.stringify(c.metadata.ownerReferences));
  await api.merge('bob', GADGET, { metadata: { finalizers: null } });
});
await step('same second manager update then apply by same name', async () => {
  await api.ok('POST', GADGETS + '?fieldManager=alice', { body: gadget({ color: 'a', size: 1 }) });
  show('update then apply', await api.applied('alice', GADGET, gadget({ color: 'a' })));
  show('update then apply less', (await api.apply('alice', GADGET, gadget({ color: 'b' }))).body);
});
await step('apply secret/pod', async () => {
  const pod = { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'p' }, spec: { containers: [{ name: 'c', image: 'i', ports: [{ containerPort: 80 }] }] } };
  show('pod create', await api.ok('POST', '/api/v1/namespaces/ns/pods?fieldManager=a', { body: pod }));
  const svc = { apiVersion: 'v1', kind: 'Service', metadata: { name: 's' }, spec: { ports: [{ port: 80 }], selector: { a: 'b' } } };
  const s = await api.apply('alice', '/api/v1/namespaces/ns/services/s', svc);
  show('svc', s.body);
  const s2 = await api.apply('alice', '/api/v1/namespaces/ns/services/s', svc);
  console.log('svc noop', s2.body.metadata?.resourceVersion === s.body.metadata?.resourceVersion, s2.status);
});
await api.stop();
