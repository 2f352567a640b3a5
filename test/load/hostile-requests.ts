/** Requests that are as expensive as a user can make them: shared by the tests of the event loop and the benchmark. */
import type { Loose } from '#test/support/test-api.ts';

export interface HostileRequest {
  readonly method: string;
  readonly url: string;
  readonly body: Buffer;
  readonly contentType: string;
  readonly accept?: string;
  /** The status of the answer. */
  readonly want: number;
  /** Sends the request this many times at once. */
  readonly copies?: number;
  /** For a watch, which stays open until the attack ends: the number of events to wait for. */
  readonly events?: number;
}

/** Several requests, one after the other. */
export interface Attack {
  readonly requests: readonly HostileRequest[];
  /** True if the attack needs the objects of `preparationOf`. */
  readonly isPrepared?: boolean;
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

const get = (url: string, more: Partial<HostileRequest> = {}): HostileRequest => ({
  ...remove(url),
  method: 'GET',
  ...more,
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

const AS_TABLE = 'application/json;as=Table;g=meta.k8s.io;v=v1';
const AS_METADATA = 'application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1';
/** As many as one user may start in one turn. */
const AT_ONCE = 64;
const LEASE_COUNT = 8000;
const SECRET_COUNT = 300;

const leasesOf = (namespace: string) => `/apis/coordination.k8s.io/v1/namespaces/${namespace}/leases`;
const secretsOf = (namespace: string) => `/api/v1/namespaces/${namespace}/secrets`;

/** Returns the creates of the objects that attacks by reads need: many small ones, and some large ones. */
export function preparationOf(namespace: string): readonly HostileRequest[] {
  const lease = (name: string) => ({
    apiVersion: 'coordination.k8s.io/v1',
    kind: 'Lease',
    metadata: { name, labels: { a: '1' } },
  });
  const secret = (name: string) => ({
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name },
    data: fields(2000, 'eHg='),
  });
  return [
    ...many(SECRET_COUNT, (index) => post(secretsOf(namespace), secret(`s${index}`))),
    ...many(LEASE_COUNT, (index) => post(leasesOf(namespace), lease(`l${index}`))),
    post(`/api/v1/namespaces/${namespace}/configmaps`, map('wide', { data: fields(20_000, 'x') })),
  ];
}

/** Returns the attacks on objects of a namespace. Each key is the case of a test and the line of a benchmark. */
export function attacksIn(namespace: string): Readonly<Record<string, Attack>> {
  const PODS = `/api/v1/namespaces/${namespace}/pods`;
  const MAPS = `/api/v1/namespaces/${namespace}/configmaps`;
  const SERVICES = `/api/v1/namespaces/${namespace}/services`;
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
      requests: [{ ...post(MAPS, Buffer.alloc(BODY_BYTES, '['), 400), copies: 150 }],
    },
    '50 applies of 3 MiB of "[" at once': {
      requests: [{ ...patch(`${MAPS}/deep?fieldManager=m`, APPLY, Buffer.alloc(BODY_BYTES, '['), 400), copies: 50 }],
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
      requests: [get(`${PODS}?labelSelector=${encodeURIComponent(many(5000, (index) => `k${index}!=x`).join(','))}`)],
    },
    'a list by label of 12 large objects': {
      requests: [
        ...many(12, (index) => post(MAPS, map(`large-${index}`, { data: fields(20_000, 'some text that is longer') }))),
        get(`${MAPS}?labelSelector=a!%3Db&limit=1`),
      ],
    },
    'a quota that counts 99 large Services': {
      requests: [
        ...many(99, (index) =>
          post(SERVICES, {
            ...{ apiVersion: 'v1', kind: 'Service', metadata: { name: `s${index}` } },
            spec: { ports: [{ port: 80 }], selector: fields(8000, 'some-longer-text') },
          }),
        ),
        post(`/api/v1/namespaces/${namespace}/resourcequotas`, {
          ...{ apiVersion: 'v1', kind: 'ResourceQuota', metadata: { name: 'wide' } },
          spec: { hard: { 'services.nodeports': '1000' } },
        }),
      ],
    },
    ...readAttacksIn(namespace),
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

/** Attacks by reads: their cost depends on what is stored, not on what is sent. */
function readAttacksIn(namespace: string): Readonly<Record<string, Attack>> {
  const WIDE = `/api/v1/namespaces/${namespace}/configmaps/wide`;
  const SECRETS = secretsOf(namespace);
  const LEASES = leasesOf(namespace);
  const isPrepared = true;
  const watch = (url: string, events: number, more: Partial<HostileRequest> = {}) =>
    get(`${url}${url.includes('?') ? '&' : '?'}watch=true&timeoutSeconds=5`, { events, ...more });
  const bounds = many(2000, (index) => `a<${10_000 + index}`).join(',');
  return {
    '64 GETs of a large object as a Table': {
      requests: [get(WIDE, { accept: AS_TABLE, copies: AT_ONCE })],
      isPrepared,
    },
    '64 GETs of a large object as YAML': {
      requests: [get(WIDE, { accept: 'application/yaml', copies: AT_ONCE })],
      isPrepared,
    },
    'a change of a large object that 100 watches see as metadata': {
      requests: [
        watch(`${WIDE.replace('/wide', '')}?fieldSelector=metadata.name%3Dwide`, 1, {
          accept: AS_METADATA,
          copies: 100,
        }),
        label(WIDE),
      ],
      isPrepared,
    },
    'a change of a large object that 100 watches see as a Table': {
      requests: [
        watch(`${WIDE.replace('/wide', '')}?fieldSelector=metadata.name%3Dwide`, 1, { accept: AS_TABLE, copies: 100 }),
        patch(WIDE, MERGE, { metadata: { labels: { later: 'table' } } }),
      ],
      isPrepared,
    },
    'a large object that leaves the selection of 100 watches': {
      requests: [
        patch(WIDE, MERGE, { metadata: { labels: { stays: 'yes' } } }),
        watch(`${WIDE.replace('/wide', '')}?labelSelector=stays%3Dyes`, 1, { copies: 100 }),
        patch(WIDE, MERGE, { metadata: { labels: { stays: null } } }),
      ],
      isPrepared,
    },
    '20 watches by the type of 300 large Secrets': {
      requests: [watch(`${SECRETS}?fieldSelector=type%3DOpaque`, SECRET_COUNT, { copies: 20 })],
      isPrepared,
    },
    '20 watches of 300 large Secrets as metadata': {
      requests: [watch(SECRETS, SECRET_COUNT, { accept: AS_METADATA, copies: 20 })],
      isPrepared,
    },
    '64 watches of 8,000 objects': { requests: [watch(LEASES, LEASE_COUNT, { copies: AT_ONCE })], isPrepared },
    '64 watches of 8,000 objects as metadata': {
      requests: [watch(LEASES, LEASE_COUNT, { accept: AS_METADATA, copies: AT_ONCE })],
      isPrepared,
    },
    '64 watches of 8,000 objects since an old revision': {
      requests: [watch(`${LEASES}?resourceVersion=OLD`, LEASE_COUNT, { copies: AT_ONCE })],
      isPrepared,
    },
    '64 lists at an old revision, before 8,000 changes': {
      requests: [get(`${LEASES}?resourceVersion=OLD&resourceVersionMatch=Exact`, { copies: AT_ONCE })],
      isPrepared,
    },
    '64 lists of 8,000 objects': { requests: [get(LEASES, { copies: AT_ONCE })], isPrepared },
    '2,000 bounds of one label on a list of 8,000 objects': {
      requests: [get(`${LEASES}?labelSelector=${encodeURIComponent(bounds)}`)],
      isPrepared,
    },
  };
}
