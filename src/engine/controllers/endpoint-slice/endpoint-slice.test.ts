import assert from 'node:assert/strict';
import { test } from 'node:test';
import { desiredSlices } from '#engine/controllers/endpoint-slice/desired-slices.ts';
import { decideSlices } from '#engine/controllers/endpoint-slice/endpoint-slice.ts';
import type { EngineSlice } from '#engine/controllers/endpoint-slice/kinds.ts';
import type { EnginePod } from '#engine/controllers/kinds.ts';
import type { Service, ServiceSpec } from '#engine/registry/kinds/core/service-schema.ts';
import type { Stored } from '#kube/meta.ts';

const service = (spec: Partial<ServiceSpec> = {}): Stored<Service> => ({
  apiVersion: 'v1',
  kind: 'Service',
  metadata: {
    name: 'web',
    namespace: 'default',
    uid: 'service-uid',
    resourceVersion: '1',
    creationTimestamp: '',
    labels: { tier: 'front' },
  },
  spec: {
    type: 'ClusterIP',
    clusterIP: '10.96.0.9',
    clusterIPs: ['10.96.0.9'],
    ipFamilies: ['IPv4'],
    selector: { app: 'web' },
    ports: [{ port: 80, targetPort: 8080 }],
    ...spec,
  },
});

interface PodParts {
  readonly ip?: string;
  readonly isReady?: boolean;
  readonly isDeleted?: boolean;
  readonly created?: string;
  readonly spec?: Partial<EnginePod['spec']>;
}

function pod(
  name: string,
  { ip = '10.244.0.5', isReady = true, isDeleted = false, created = '1', spec }: PodParts = {},
) {
  const made: Stored<EnginePod> = {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name,
      namespace: 'default',
      uid: `${name}-uid`,
      resourceVersion: '1',
      creationTimestamp: created,
      ...(isDeleted && { deletionTimestamp: '2026-01-01T00:00:00Z' }),
    },
    spec: { containers: [{ name: 'main' }], ...spec },
    status: { phase: 'Running', podIPs: [{ ip }], conditions: [{ type: 'Ready', status: isReady ? 'True' : 'False' }] },
  };
  return made;
}

const named = (port: number) => ({ containers: [{ name: 'main', ports: [{ name: 'http', containerPort: port }] }] });

/** Pods and the resulting endpoints as text: address, ready, serving, terminating, pod, hostname. */
const cases: Record<string, { spec?: Partial<ServiceSpec>; pods: Stored<EnginePod>[]; want: string[] }> = {
  'a pod that is being deleted is not ready, but may still serve': {
    pods: [pod('a', { isDeleted: true })],
    want: ['10.244.0.5 false true true a'],
  },
  'addresses that are not ready are published on request': {
    spec: { publishNotReadyAddresses: true },
    pods: [pod('a', { isReady: false })],
    want: ['10.244.0.5 true false false a'],
  },
  'of two pods with one address, the one that is ready wins': {
    pods: [pod('source', { created: '1' }), pod('target', { created: '2', isReady: false })],
    want: ['10.244.0.5 true true false source'],
  },
  'after the switch-over, the target wins': {
    pods: [pod('source', { created: '1', isReady: false }), pod('target', { created: '2' })],
    want: ['10.244.0.5 true true false target'],
  },
  'if both are ready, the one that is not being deleted wins': {
    pods: [pod('source', { created: '1', isDeleted: true }), pod('target', { created: '2' })],
    want: ['10.244.0.5 true true false target'],
  },
  'a pod in the subdomain of the Service has its hostname': {
    pods: [pod('a', { spec: { hostname: 'db-0', subdomain: 'web' } })],
    want: ['10.244.0.5 true true false a db-0'],
  },
  'a pod in another subdomain has none': {
    pods: [pod('a', { spec: { hostname: 'db-0', subdomain: 'other' } })],
    want: ['10.244.0.5 true true false a'],
  },
  'an address of another family does not count': {
    pods: [pod('a', { ip: 'fd00::5' })],
    want: [],
  },
};

for (const [name, { spec, pods, want }] of Object.entries(cases)) {
  test(name, () => {
    const endpoints = desiredSlices(service(spec), pods).flatMap((slice) => slice.endpoints);
    const texts = endpoints.map(({ addresses, conditions = {}, targetRef, hostname = '' }) =>
      [addresses[0], conditions.ready, conditions.serving, conditions.terminating, targetRef?.name, hostname]
        .join(' ')
        .trim(),
    );
    assert.deepEqual(texts, want);
  });
}

test('pods with different numbers for a named port are in different slices; without the name they have no port', () => {
  const pods = [
    pod('a', { ip: '10.244.0.5', spec: named(8080) }),
    pod('b', { ip: '10.244.0.6', spec: named(9090) }),
    pod('c', { ip: '10.244.0.7' }),
  ];
  const slices = desiredSlices(service({ ports: [{ port: 80, targetPort: 'http' }] }), pods);
  const found = slices.map(({ ports = [], endpoints }) => [ports[0]?.port, endpoints[0]?.addresses[0]]);
  assert.deepEqual(found, [
    [8080, '10.244.0.5'],
    [9090, '10.244.0.6'],
    [undefined, '10.244.0.7'],
  ]);
  assert.equal(new Set(slices.map(({ metadata }) => metadata.name)).size, 3);
});

test('a slice has at most 100 endpoints, the labels of the Service, and the Service as its owner', () => {
  const pods = Array.from({ length: 201 }, (_, i) => pod(`p${i}`, { ip: `10.244.1.${i}` }));
  const slices = desiredSlices(service(), pods);
  assert.deepEqual(
    slices.map(({ endpoints }) => endpoints.length),
    [100, 100, 1],
  );
  assert.deepEqual(slices[0]?.metadata.labels, {
    tier: 'front',
    'kubernetes.io/service-name': 'web',
    'endpointslice.kubernetes.io/managed-by': 'endpointslice-controller.k8s.io',
  });
  assert.equal(slices[0]?.metadata.ownerReferences?.[0]?.uid, 'service-uid');
});

const stored = (slice: EngineSlice): Stored<EngineSlice> => ({
  ...slice,
  metadata: {
    ...slice.metadata,
    name: slice.metadata.name ?? '',
    uid: 'slice-uid',
    resourceVersion: '1',
    creationTimestamp: '',
  },
});

test('slices are created, patched and deleted as the pods change, and nothing is written at rest', () => {
  const pods = [pod('a')];
  const verbs = (slices: readonly EngineSlice[], now: Stored<EnginePod>[]) =>
    decideSlices({ service: service(), pods: now, slices: slices.map(stored) }).changes.map((change) => change.do);
  const wanted = desiredSlices(service(), pods);
  assert.deepEqual(verbs([], pods), ['create']);
  assert.deepEqual(verbs(wanted, pods), []);
  assert.deepEqual(verbs(wanted, []), ['patch']);
  const foreign = { ...wanted[0]!, metadata: { ...wanted[0]!.metadata, name: 'web-old' } };
  assert.deepEqual(verbs([...wanted, foreign], pods), ['delete']);
});
