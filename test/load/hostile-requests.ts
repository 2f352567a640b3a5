/** Requests that are as expensive as a user can make them: shared by the tests of the event loop and the benchmark. */
import type { Loose } from '#test/support/test-api.ts';

export interface HostileRequest {
  readonly method: string;
  readonly url: string;
  readonly body: Buffer;
  readonly contentType: string;
  /** The status of the answer. */
  readonly want: number;
}

/** Several requests, one after the other. */
export interface Attack {
  readonly requests: readonly HostileRequest[];
  /** Sends the first request this many times at once. */
  readonly copies?: number;
  /** True if the attack needs our kinds. */
  readonly vms?: boolean;
}

const JSON_TYPE = 'application/json';
const MERGE = 'application/merge-patch+json';
const STRATEGIC = 'application/strategic-merge-patch+json';
const JSON_PATCH = 'application/json-patch+json';
const APPLY = 'application/apply-patch+yaml';
const CRDS = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions';
/** The limit of a body. */
const BODY_BYTES = 3 * 1024 * 1024;

const many = <T>(count: number, make: (index: number) => T) => Array.from({ length: count }, (_, index) => make(index));
const fields = <T>(count: number, value: T) => Object.fromEntries(many(count, (index) => [`k${index}`, value]));

function bytesOf(body: unknown): Buffer {
  return Buffer.isBuffer(body) ? body : Buffer.from(typeof body === 'string' ? body : JSON.stringify(body));
}

function post(url: string, body: unknown, want = 201): HostileRequest {
  return { method: 'POST', url, body: bytesOf(body), contentType: JSON_TYPE, want };
}

function patch(url: string, contentType: string, body: unknown, want = 200): HostileRequest {
  return { method: 'PATCH', url, body: bytesOf(body), contentType, want };
}

const label = (url: string) => patch(url, MERGE, { metadata: { labels: { later: 'yes' } } });
const remove = (url: string): HostileRequest => ({
  ...{ method: 'DELETE', url, body: Buffer.alloc(0), contentType: JSON_TYPE },
  want: 200,
});

function pod(name: string, spec: Loose): Loose {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name },
    spec: { containers: [{ name: 'c', image: 'i' }], ...spec },
  };
}

function map(name: string, more: Loose, metadata: Loose = {}): Loose {
  return { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name, ...metadata }, ...more };
}

function vm(name: string, spec: Loose): Loose {
  const domain = { devices: {}, resources: { requests: { memory: '128Mi' } } };
  return {
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachine',
    metadata: { name },
    spec: { runStrategy: 'Halted', template: { spec: { domain, ...spec } } },
  };
}

const tolerations = many(15_000, (index) => ({ key: `k${index}`, operator: 'Exists' }));
const nodeTerms = (count: number) => ({
  nodeAffinity: {
    requiredDuringSchedulingIgnoredDuringExecution: {
      nodeSelectorTerms: many(count, (index) => ({
        matchExpressions: [{ key: `k${index}`, operator: 'In', values: ['x'] }],
      })),
    },
  },
});

/** Returns the attacks on objects of a namespace. Each key is the case of a test and the line of a benchmark. */
export function attacksIn(namespace: string): Readonly<Record<string, Attack>> {
  const PODS = `/api/v1/namespaces/${namespace}/pods`;
  const MAPS = `/api/v1/namespaces/${namespace}/configmaps`;
  const BUDGETS = `/apis/policy/v1/namespaces/${namespace}/poddisruptionbudgets`;
  const VMS = `/apis/kubevirt.io/v1/namespaces/${namespace}/virtualmachines`;
  const apply = (name: string, manager: string, count: number, value: string, want: number, query = '') =>
    patch(`${MAPS}/${name}?fieldManager=${manager}${query}`, APPLY, map(name, { data: fields(count, value) }), want);
  return {
    'a pod with 15,000 tolerations, and later writes': {
      requests: [post(PODS, pod('tolerant', { tolerations })), label(`${PODS}/tolerant`), remove(`${PODS}/tolerant`)],
    },
    'a VM with 15,000 tolerations, and later writes': {
      requests: [post(VMS, vm('tolerant', { tolerations })), label(`${VMS}/tolerant`), remove(`${VMS}/tolerant`)],
      vms: true,
    },
    'a pod with 20,000 containers': {
      requests: [
        post(PODS, pod('crowd', { containers: many(20_000, (index) => ({ name: `c${index}`, image: 'i' })) }), 413),
      ],
    },
    'a pod with 4,000 containers': {
      requests: [
        post(PODS, pod('group', { containers: many(4000, (index) => ({ name: `c${index}`, image: 'i' })) }), 422),
      ],
    },
    'a pod with 500 containers, and later writes': {
      requests: [
        post(PODS, pod('group', { containers: many(500, (index) => ({ name: `c${index}`, image: 'i' })) })),
        label(`${PODS}/group`),
      ],
    },
    'an object with 250,000 unknown fields': { requests: [post(MAPS, map('unknown', fields(250_000, 1)), 413)] },
    'an object with 45,000 unknown fields': { requests: [post(MAPS, map('unknown', fields(45_000, 1)))] },
    'a server-side apply of 30,000 keys, by several managers': {
      requests: [
        apply('applied', 'one', 30_000, 'x', 201),
        apply('applied', 'two', 30_000, 'y', 409),
        apply('applied', 'two', 30_000, 'y', 200, '&force=true'),
        apply('applied', 'two', 1, 'y', 200),
      ],
    },
    'a pod with 15,000 affinity terms': { requests: [post(PODS, pod('choosy', { affinity: nodeTerms(15_000) }), 413)] },
    'a pod with 7,000 affinity terms, which is scheduled': {
      requests: [post(PODS, pod('picky', { affinity: nodeTerms(7000) })), label(`${PODS}/picky`)],
    },
    'a VM with 7,000 affinity terms': {
      requests: [post(VMS, vm('picky', { affinity: nodeTerms(7000) })), label(`${VMS}/picky`)],
      vms: true,
    },
    'a PodDisruptionBudget with 5,000 expressions, and 50 pods': {
      requests: [
        post(BUDGETS, {
          apiVersion: 'policy/v1',
          kind: 'PodDisruptionBudget',
          metadata: { name: 'wide' },
          spec: {
            minAvailable: 0,
            selector: {
              matchExpressions: many(5000, (index) => ({ key: `k${index}`, operator: 'NotIn', values: ['x'] })),
            },
          },
        }),
        ...many(50, (index) => post(PODS, pod(`small-${index}`, {}))),
        ...many(50, (index) => label(`${PODS}/small-${index}`)),
        post(`${PODS}/small-1/eviction`, { apiVersion: 'policy/v1', kind: 'Eviction', metadata: { name: 'small-1' } }),
      ],
    },
    '150 bodies of 3 MiB of "[" at once': {
      requests: [post(MAPS, Buffer.alloc(BODY_BYTES, '['), 400)],
      copies: 150,
    },
    '50 applies of 3 MiB of "[" at once': {
      requests: [patch(`${MAPS}/deep?fieldManager=m`, APPLY, Buffer.alloc(BODY_BYTES, '['), 400)],
      copies: 50,
    },
    'a body of 3 MiB of "{}," in a list': {
      requests: [post(MAPS, `{"a":[${'{},'.repeat(BODY_BYTES / 3 - 10)}0]}`, 413)],
    },
    'a body of 3 MiB of the same key': {
      requests: [post(MAPS, `{${'"a":0,'.repeat(BODY_BYTES / 6 - 10)}"b":0}`, 413)],
    },
    'a body of 3 MiB of text that ends wrong': {
      requests: [post(MAPS, `{"a":"${'x'.repeat(BODY_BYTES - 100)}"]`, 400)],
    },
    'YAML with 29,000 keys': {
      requests: [
        {
          ...post(
            MAPS,
            `apiVersion: v1\nkind: ConfigMap\nmetadata: {name: yaml}\ndata:\n${many(29_000, (i) => ` k${i}: x\n`).join('')}`,
          ),
          contentType: 'application/yaml',
        },
      ],
    },
    'a JSON patch with 9,000 operations on a large object': {
      requests: [
        post(MAPS, map('patched', { data: fields(20_000, 'x') })),
        patch(
          `${MAPS}/patched`,
          JSON_PATCH,
          many(9000, (index) => ({ op: 'add', path: `/data/n${index}`, value: 'y' })),
        ),
      ],
    },
    'a strategic merge patch of 12,000 environment variables': {
      requests: [
        post(
          PODS,
          pod('env', {
            containers: [{ name: 'c', image: 'i', env: many(12_000, (i) => ({ name: `e${i}`, value: 'x' })) }],
          }),
        ),
        patch(
          `${PODS}/env`,
          STRATEGIC,
          { spec: { containers: [{ name: 'c', env: many(12_000, (i) => ({ name: `e${i}`, value: 'y' })) }] } },
          422,
        ),
      ],
    },
    'an object with 40,000 labels': { requests: [post(MAPS, map('labels', {}, { labels: fields(40_000, 'x') }), 422)] },
    'an object with 40,000 finalizers': {
      requests: [post(MAPS, map('finalizers', {}, { finalizers: many(40_000, (index) => `a.b/f${index}`) }))],
    },
    'an object with 9,000 owners that do not exist': {
      requests: [
        post(
          MAPS,
          map(
            'owned',
            {},
            {
              ownerReferences: many(9000, (i) => ({ apiVersion: 'v1', kind: 'Pod', name: `p${i}`, uid: `u${i}` })),
            },
          ),
        ),
      ],
    },
    'an object with 8,000 controllers': {
      requests: [
        post(
          MAPS,
          map(
            'controlled',
            {},
            {
              ownerReferences: many(8000, (i) => ({
                ...{ apiVersion: 'v1', kind: 'Pod', name: `p${i}`, uid: `u${i}`, controller: true },
              })),
            },
          ),
          422,
        ),
      ],
    },
    'a selector with 5,000 labels on a list': {
      requests: [
        {
          ...remove(`${PODS}?labelSelector=${encodeURIComponent(many(5000, (index) => `k${index}!=x`).join(','))}`),
          method: 'GET',
        },
      ],
    },
    'a list by label of 12 large objects': {
      requests: [
        ...many(12, (index) => post(MAPS, map(`large-${index}`, { data: fields(20_000, 'some text that is longer') }))),
        { ...remove(`${MAPS}?labelSelector=a!%3Db&limit=1`), method: 'GET' },
      ],
    },
    'a definition with 12,000 properties': {
      requests: [
        post(CRDS, {
          apiVersion: 'apiextensions.k8s.io/v1',
          kind: 'CustomResourceDefinition',
          metadata: { name: `wides.${namespace}.local` },
          spec: {
            group: `${namespace}.local`,
            scope: 'Namespaced',
            names: { plural: 'wides', singular: 'wide', kind: 'Wide' },
            versions: [
              {
                name: 'v1',
                served: true,
                storage: true,
                schema: { openAPIV3Schema: { type: 'object', properties: fields(12_000, { type: 'string' }) } },
              },
            ],
          },
        }),
      ],
    },
  };
}
