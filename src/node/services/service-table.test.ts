import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { parseIpAddress, parseIpNetwork } from '#lib/ip-address.ts';
import type { RoutedService, RoutedSlice } from '#node/services/kinds.ts';
import { planForwards } from '#node/services/service-forwards.ts';
import { buildHostsFiles } from '#node/services/service-names.ts';
import { buildServiceTable, isGuestAddress, type ServiceNetwork } from '#node/services/service-table.ts';
import type { Stored } from '#kube/meta.ts';

const address = (text: string) => {
  const { family, value } = parseIpAddress(text);
  return { family, value };
};
const NETWORK: ServiceNetwork = {
  key: 'abcd1234',
  subnets: [parseIpNetwork('10.244.0.0/16'), parseIpNetwork('fd00:10:244::/64')],
  gateways: [address('10.244.0.1'), address('fd00:10:244::1')],
};

function service(
  name: string,
  spec: RoutedService['spec'],
  more: Pick<RoutedService, 'status'> = {},
): Stored<RoutedService> {
  return {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name, namespace: 'default', uid: name, resourceVersion: '1', creationTimestamp: '2026' },
    spec: { type: 'ClusterIP', ...spec },
    ...more,
  };
}

interface SliceEndpoint {
  readonly ip: string;
  readonly node?: string;
  readonly conditions?: { readonly ready?: boolean; readonly serving?: boolean; readonly terminating?: boolean };
  readonly hostname?: string;
}

function slice(
  endpoints: readonly SliceEndpoint[],
  ports: RoutedSlice['ports'] = [{ name: '', port: 8080 }],
): RoutedSlice {
  return {
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: { name: 's' },
    addressType: endpoints[0]?.ip.includes(':') === true ? 'IPv6' : 'IPv4',
    endpoints: endpoints.map(({ ip, node = 'here', conditions = { ready: true }, hostname }) => ({
      addresses: [ip],
      conditions,
      nodeName: node,
      ...(hostname !== undefined && { hostname }),
    })),
    ports,
  };
}

const TWO = [slice([{ ip: '10.244.0.5' }, { ip: '10.244.0.6' }])];
const WEB = { clusterIPs: ['10.96.0.9'], ports: [{ port: 80 }] };

interface Case {
  readonly services: readonly Stored<RoutedService>[];
  readonly slices?: Readonly<Record<string, readonly RoutedSlice[]>>;
  readonly network?: ServiceNetwork;
}

function plan({ services, slices = {}, network = NETWORK }: Case) {
  return planForwards({
    services,
    slicesOf: (_, name) => slices[name] ?? [],
    isLocalNode: (name) => name === 'here',
    isGuest: (ip) => isGuestAddress(network, ip),
    remoteFamilies: new Set((network.hostAddresses ?? []).map(({ family }) => family)),
  });
}

/** The rule sets that must not change unnoticed. */
const golden: Record<string, Case> = {
  'no-services': { services: [] },
  'cluster-ip': { services: [service('web', WEB)], slices: { web: TWO } },
  'node-port-dual-stack': {
    services: [
      service('web', {
        type: 'NodePort',
        clusterIPs: ['10.96.0.9', 'fd00:10:96::9'],
        ports: [
          { name: 'http', port: 80, nodePort: 30_080 },
          { name: 'dns', port: 53, protocol: 'UDP', nodePort: 30_053 },
        ],
      }),
    ],
    slices: {
      web: [
        slice(
          [{ ip: '10.244.0.5' }],
          [
            { name: 'http', port: 8080 },
            { name: 'dns', protocol: 'UDP', port: 5353 },
          ],
        ),
        slice(
          [{ ip: 'fd00:10:244::5' }],
          [
            { name: 'http', port: 8080 },
            { name: 'dns', protocol: 'UDP', port: 5353 },
          ],
        ),
      ],
    },
  },
  'affinity-and-no-endpoints': {
    services: [
      service('sticky', { ...WEB, sessionAffinity: 'ClientIP' }),
      service('empty', { type: 'NodePort', clusterIPs: ['10.96.0.10'], ports: [{ port: 80, nodePort: 30_081 }] }),
    ],
    slices: { sticky: TWO },
  },
  'local-policies-and-load-balancer': {
    services: [
      service(
        'lb',
        {
          ...WEB,
          type: 'LoadBalancer',
          ports: [{ port: 80, nodePort: 30_082 }],
          externalTrafficPolicy: 'Local',
        },
        { status: { loadBalancer: { ingress: [{ ip: '192.0.2.10', ipMode: 'VIP' }, { ip: '127.0.0.1' }] } } },
      ),
      service('inside', { clusterIPs: ['10.96.0.11'], ports: [{ port: 80 }], internalTrafficPolicy: 'Local' }),
    ],
    slices: {
      lb: [slice([{ ip: '10.244.0.5' }, { ip: '10.244.0.6', node: 'elsewhere' }])],
      inside: [slice([{ ip: '10.244.0.6', node: 'elsewhere' }])],
    },
    network: { ...NETWORK, hostAddresses: [address('10.244.255.3')] },
  },
};

for (const [name, scene] of Object.entries(golden)) {
  test(`the rule set ${name}`, () => {
    const { text } = buildServiceTable(scene.network ?? NETWORK, plan(scene).forwards);
    const path = new URL(`golden/${name}.nft`, import.meta.url);
    assert.equal(text, readFileSync(path, 'utf8'));
  });
}

/** Services and the endpoints of the first forward. */
const endpoints: Record<string, Case & { want: string[] }> = {
  'endpoints that are not ready are not used': {
    services: [service('web', WEB)],
    slices: { web: [slice([{ ip: '10.244.0.5', conditions: { ready: false } }, { ip: '10.244.0.6' }])] },
    want: ['10.244.0.6:8080'],
  },
  'endpoints that end are used if there are no others': {
    services: [service('web', WEB)],
    slices: {
      web: [
        slice([
          { ip: '10.244.0.5', conditions: { ready: false, serving: true, terminating: true } },
          { ip: '10.244.0.6', conditions: { ready: false, serving: false } },
        ]),
      ],
    },
    want: ['10.244.0.5:8080'],
  },
  'endpoints of other hosts are not used without an address of this host': {
    services: [service('web', WEB)],
    slices: { web: [slice([{ ip: '10.244.0.5', node: 'elsewhere' }, { ip: '10.244.0.6' }])] },
    want: ['10.244.0.6:8080'],
  },
  'loopback addresses in another notation are not used': {
    services: [service('web', { clusterIPs: ['fd00:10:96::9'], ports: [{ port: 80 }] })],
    slices: { web: [slice([{ ip: '0:0::1' }]), slice([{ ip: '::ffff:127.0.0.1' }])] },
    want: [],
  },
  'loopback addresses and other families are not used': {
    services: [service('web', WEB)],
    slices: { web: [slice([{ ip: '127.0.0.1' }]), slice([{ ip: 'fd00::5' }]), slice([{ ip: 'nonsense' }])] },
    want: [],
  },
  'the port has the name and protocol of the Service': {
    services: [service('web', { ...WEB, ports: [{ name: 'dns', port: 53, protocol: 'UDP' }] })],
    slices: { web: [slice([{ ip: '10.244.0.5' }], [{ name: 'dns', protocol: 'TCP', port: 1 }])] },
    want: [],
  },
};

for (const [name, { want, ...scene }] of Object.entries(endpoints)) {
  test(name, () => {
    const [forward] = plan(scene).forwards;
    assert.deepEqual(
      forward?.internal.map(({ ip, port }) => `${ip}:${port}`),
      want,
    );
  });
}

test('SCTP is not forwarded, and that is said', () => {
  const { forwards, ignored } = plan({
    services: [service('web', { ...WEB, ports: [{ port: 80, protocol: 'SCTP' }] })],
  });
  assert.deepEqual(forwards, []);
  assert.deepEqual(ignored, ['default/web:80: SCTP is not forwarded']);
});

test('of two Services with one address, the older one has it', () => {
  const made = service('a-young', WEB);
  const young = { ...made, metadata: { ...made.metadata, creationTimestamp: '2027' } };
  const { text } = buildServiceTable(
    NETWORK,
    plan({ services: [young, service('old', WEB)], slices: { old: TWO } }).forwards,
  );
  assert.match(text, /10\.96\.0\.9 \. tcp \. 80 : goto svc_/);
  assert.doesNotMatch(text, /10\.96\.0\.9 \. tcp \. 80 : goto reject_new/);
});

const unmarked: Record<string, string> = {
  'the gateway': '10.244.0.1',
  'another address of the host': '192.0.2.1',
  'a metadata service': '169.254.169.254',
};

for (const [what, ip] of Object.entries(unmarked)) {
  test(`a Service with ${what} as its endpoint does not pass the filters of guests`, () => {
    const scene = { services: [service('web', WEB)], slices: { web: [slice([{ ip: '10.244.0.5' }, { ip }])] } };
    const { text } = buildServiceTable(NETWORK, plan(scene).forwards);
    assert.ok(text.includes(`: ${ip} . 8080`));
    assert.doesNotMatch(text, /ct mark set/);
  });
}

test('addresses with a zone and long names cannot break the rules', () => {
  const long = service('s'.repeat(63), { ...WEB, ports: [{ name: 'p'.repeat(63), port: 80 }] });
  const slices = {
    [long.metadata.name]: [
      slice([{ ip: 'fe80::1%eth0' }]),
      slice([{ ip: '10.244.0.5' }], [{ name: 'p'.repeat(63), port: 1 }]),
    ],
  };
  const { text } = buildServiceTable(NETWORK, plan({ services: [long], slices }).forwards);
  assert.doesNotMatch(text, /%/);
  for (const [, comment = ''] of text.matchAll(/comment "([^"]*)"/g)) assert.ok(comment.length < 128, comment);
});

test('the same objects in another order give the same text', () => {
  const services = [service('web', WEB), service('db', { clusterIPs: ['10.96.0.10'], ports: [{ port: 5432 }] })];
  const slices = { web: TWO, db: TWO };
  const textOf = (list: readonly Stored<RoutedService>[]) =>
    buildServiceTable(NETWORK, plan({ services: list, slices }).forwards).text;
  assert.equal(textOf(services), textOf(services.toReversed()));
});

const names: Record<string, Case & { want: Record<string, string> }> = {
  'a Service has its cluster IPs': {
    services: [service('web', { ...WEB, clusterIPs: ['10.96.0.9', 'fd00:10:96::9'] })],
    want: {
      'default.web': '10.96.0.9 web.default.svc.cluster.local\nfd00:10:96::9 web.default.svc.cluster.local\n',
    },
  },
  'a headless Service has its ready endpoints and their hostnames': {
    services: [service('db', { clusterIPs: ['None'], ports: [] })],
    slices: {
      db: [
        slice([
          { ip: '10.244.0.5', hostname: 'db-0' },
          { ip: '10.244.0.6', conditions: { ready: false }, hostname: 'db-1' },
          { ip: '10.244.0.7', hostname: 'not a label\n1.2.3.4 evil' },
        ]),
      ],
    },
    want: {
      'default.db':
        '10.244.0.5 db-0.db.default.svc.cluster.local\n10.244.0.5 db.default.svc.cluster.local\n10.244.0.7 db.default.svc.cluster.local\n',
    },
  },
  'a Service without addresses has no file': {
    services: [
      service('alias', { type: 'ExternalName' }),
      service('old', { ports: [{ port: 80 }] }),
      service('empty', { clusterIPs: ['None'] }),
    ],
    want: {},
  },
};

for (const [name, { services, slices = {}, want }] of Object.entries(names)) {
  test(`names: ${name}`, () => {
    const files = buildHostsFiles({ services, slicesOf: (_, of) => slices[of] ?? [] });
    assert.deepEqual(Object.fromEntries(files), want);
  });
}
