import assert from 'node:assert/strict';
import { test } from 'node:test';
import { allocateService, type Taken } from '#engine/admission/service-addresses/allocate-service.ts';
import { parseServiceNetworks } from '#engine/admission/service-addresses/service-networks.ts';
import type { ServiceSpec } from '#engine/registry/kinds/core/service-schema.ts';

interface Case {
  readonly spec: ServiceSpec;
  readonly old?: ServiceSpec;
  readonly subnets?: readonly string[];
  readonly taken?: { readonly addresses?: readonly string[]; readonly ports?: readonly number[] };
  /** The fields of the spec after the allocation. */
  readonly want?: Partial<ServiceSpec>;
  readonly errors?: readonly string[];
  readonly exhausted?: string;
}

const BOTH = ['10.96.0.0/16', 'fd00:10:96::/112'];
const V4 = ['10.96.0.0/16'];
const ports = [{ port: 80 }];
const SMALL = ['10.0.0.0/30'];

const cases: Record<string, Case> = {
  'allocates one address of the first family, outside of the part for addresses that users choose': {
    spec: { type: 'ClusterIP', ports },
    want: {
      clusterIP: '10.96.1.1',
      clusterIPs: ['10.96.1.1'],
      ipFamilies: ['IPv4'],
      ipFamilyPolicy: 'SingleStack',
    },
  },
  'skips addresses of other Services': {
    spec: { type: 'ClusterIP', ports },
    taken: { addresses: ['10.96.1.1', '10.96.1.2'] },
    want: { clusterIPs: ['10.96.1.3'] },
  },
  'uses the reserved part when the rest is full': {
    spec: { type: 'ClusterIP', ports },
    subnets: SMALL,
    taken: { addresses: ['10.0.0.1'] },
    want: { clusterIPs: ['10.0.0.2'] },
  },
  'reports a full subnet': {
    spec: { type: 'ClusterIP', ports },
    subnets: SMALL,
    taken: { addresses: ['10.0.0.1', '10.0.0.2'] },
    exhausted: 'failed to allocate a serviceIP: range is full',
  },
  'allocates one address of each family': {
    spec: { type: 'ClusterIP', ports, ipFamilyPolicy: 'RequireDualStack' },
    want: { clusterIPs: ['10.96.1.1', 'fd00:10:96::101'], ipFamilies: ['IPv4', 'IPv6'] },
  },
  'allocates only IPv6 on request': {
    spec: { type: 'ClusterIP', ports, ipFamilies: ['IPv6'] },
    want: { clusterIPs: ['fd00:10:96::101'], ipFamilyPolicy: 'SingleStack' },
  },
  'prefers two families and accepts one': {
    spec: { type: 'ClusterIP', ports, ipFamilyPolicy: 'PreferDualStack' },
    subnets: V4,
    want: { clusterIPs: ['10.96.1.1'], ipFamilies: ['IPv4'], ipFamilyPolicy: 'PreferDualStack' },
  },
  'refuses two families on a server with one': {
    spec: { type: 'ClusterIP', ports, ipFamilyPolicy: 'RequireDualStack' },
    subnets: V4,
    errors: [
      'spec.ipFamilyPolicy: Invalid value: "RequireDualStack": this cluster is not configured for dual-stack services',
    ],
  },
  'refuses a family without a subnet': {
    spec: { type: 'ClusterIP', ports, ipFamilies: ['IPv6'] },
    subnets: V4,
    errors: ['spec.ipFamilies[0]: Invalid value: "IPv6": not configured on this cluster'],
  },
  'takes the families from the given addresses': {
    spec: {
      type: 'ClusterIP',
      ports,
      clusterIP: 'fd00:10:96::9',
      clusterIPs: ['fd00:10:96::9', '10.96.0.9'],
      ipFamilyPolicy: 'RequireDualStack',
    },
    want: { clusterIP: 'fd00:10:96::9', ipFamilies: ['IPv6', 'IPv4'] },
  },
  'refuses two addresses without a policy for two families': {
    spec: { type: 'ClusterIP', ports, clusterIP: '10.96.0.9', clusterIPs: ['10.96.0.9', 'fd00:10:96::9'] },
    errors: [
      `spec.ipFamilyPolicy: Invalid value: "SingleStack": must be 'RequireDualStack' or 'PreferDualStack' when multiple cluster IPs are specified`,
    ],
  },
  'refuses an address of another Service': {
    spec: { type: 'ClusterIP', ports, clusterIP: '10.96.0.9' },
    taken: { addresses: ['10.96.0.9'] },
    errors: [
      'spec.clusterIPs: Invalid value: ["10.96.0.9"]: failed to allocate IP 10.96.0.9: provided IP is already allocated',
    ],
  },
  'refuses an address outside of the subnet': {
    spec: { type: 'ClusterIP', ports, clusterIP: '10.1.2.3' },
    errors: [
      'spec.clusterIPs: Invalid value: ["10.1.2.3"]: failed to allocate IP 10.1.2.3: the provided IP (10.1.2.3) is not in the valid range. The range of valid IPs is 10.96.0.0/16',
    ],
  },
  'refuses the network address': {
    spec: { type: 'ClusterIP', ports, clusterIP: '10.96.0.0' },
    errors: [
      'spec.clusterIPs: Invalid value: ["10.96.0.0"]: failed to allocate IP 10.96.0.0: the provided IP (10.96.0.0) is not in the valid range. The range of valid IPs is 10.96.0.0/16',
    ],
  },
  'refuses text that is not an address': {
    spec: { type: 'ClusterIP', ports, clusterIP: 'nowhere' },
    errors: [
      'spec.clusterIPs[0]: Invalid value: "nowhere": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)',
    ],
  },
  'allocates nothing for a headless Service': {
    spec: { type: 'ClusterIP', ports, clusterIP: 'None', selector: { app: 'web' } },
    want: { clusterIP: 'None', clusterIPs: ['None'], ipFamilies: ['IPv4'], ipFamilyPolicy: 'SingleStack' },
  },
  'allows both families for a headless Service without selector': {
    spec: { type: 'ClusterIP', ports, clusterIP: 'None' },
    subnets: V4,
    want: { clusterIPs: ['None'], ipFamilies: ['IPv4', 'IPv6'], ipFamilyPolicy: 'RequireDualStack' },
  },
  'allocates nothing for an ExternalName': {
    spec: { type: 'ExternalName', externalName: 'example.org' },
    want: {},
  },
  'keeps addresses that an update does not name': {
    spec: { type: 'ClusterIP', ports: [{ port: 81 }] },
    old: {
      type: 'ClusterIP',
      ports,
      clusterIP: '10.96.7.7',
      clusterIPs: ['10.96.7.7'],
      ipFamilies: ['IPv4'],
      ipFamilyPolicy: 'SingleStack',
    },
    want: { clusterIPs: ['10.96.7.7'], ipFamilies: ['IPv4'], ipFamilyPolicy: 'SingleStack' },
  },
  'adds a second family': {
    spec: {
      type: 'ClusterIP',
      ports,
      clusterIP: '10.96.7.7',
      clusterIPs: ['10.96.7.7'],
      ipFamilyPolicy: 'PreferDualStack',
    },
    old: {
      type: 'ClusterIP',
      ports,
      clusterIP: '10.96.7.7',
      clusterIPs: ['10.96.7.7'],
      ipFamilies: ['IPv4'],
      ipFamilyPolicy: 'SingleStack',
    },
    want: { clusterIPs: ['10.96.7.7', 'fd00:10:96::101'], ipFamilies: ['IPv4', 'IPv6'] },
  },
  'releases the second family': {
    spec: {
      type: 'ClusterIP',
      ports,
      clusterIP: '10.96.7.7',
      clusterIPs: ['10.96.7.7', 'fd00:10:96::7'],
      ipFamilies: ['IPv4', 'IPv6'],
      ipFamilyPolicy: 'SingleStack',
    },
    old: {
      type: 'ClusterIP',
      ports,
      clusterIP: '10.96.7.7',
      clusterIPs: ['10.96.7.7', 'fd00:10:96::7'],
      ipFamilies: ['IPv4', 'IPv6'],
      ipFamilyPolicy: 'RequireDualStack',
    },
    want: { clusterIPs: ['10.96.7.7'], ipFamilies: ['IPv4'] },
  },
  'allocates an address for a Service that was stored without one': {
    spec: { type: 'ClusterIP', ports },
    old: { type: 'ClusterIP', ports },
    want: { clusterIPs: ['10.96.1.1'] },
  },
  'keeps a stored address outside of the subnet': {
    spec: { type: 'ClusterIP', ports, clusterIP: '192.0.2.1', clusterIPs: ['192.0.2.1'] },
    old: { type: 'ClusterIP', ports, clusterIP: '192.0.2.1', clusterIPs: ['192.0.2.1'] },
    want: { clusterIPs: ['192.0.2.1'], ipFamilies: ['IPv4'] },
  },
  'shares a node port between the protocols of a port': {
    spec: {
      type: 'NodePort',
      ports: [
        { name: 'dns', port: 53, protocol: 'TCP' },
        { name: 'dns-udp', port: 53, protocol: 'UDP' },
        { name: 'web', port: 80 },
      ],
    },
    want: {
      ports: [
        { name: 'dns', port: 53, protocol: 'TCP', nodePort: 30_086 },
        { name: 'dns-udp', port: 53, protocol: 'UDP', nodePort: 30_086 },
        { name: 'web', port: 80, nodePort: 30_087 },
      ],
    },
  },
  'refuses a node port of another Service': {
    spec: { type: 'NodePort', ports: [{ port: 80, nodePort: 30_100 }] },
    taken: { ports: [30_100] },
    errors: ['spec.ports[0].nodePort: Invalid value: 30100: provided port is already allocated'],
  },
  'refuses a node port outside of the range': {
    spec: { type: 'NodePort', ports: [{ port: 80, nodePort: 80 }] },
    errors: [
      'spec.ports[0].nodePort: Invalid value: 80: provided port is not in the valid range. The range of valid ports is 30000-32767',
    ],
  },
  'keeps the node port of a port with the same name': {
    spec: { type: 'NodePort', ports: [{ name: 'web', port: 81 }], clusterIP: '10.96.7.7', clusterIPs: ['10.96.7.7'] },
    old: {
      type: 'NodePort',
      ports: [{ name: 'web', port: 80, nodePort: 30_100 }],
      clusterIP: '10.96.7.7',
      clusterIPs: ['10.96.7.7'],
    },
    want: { ports: [{ name: 'web', port: 81, nodePort: 30_100 }] },
  },
  'allocates no node ports for a load balancer that needs none': {
    spec: { type: 'LoadBalancer', ports: [{ port: 80 }], allocateLoadBalancerNodePorts: false },
    want: { ports: [{ port: 80 }] },
  },
  'allocates a port for health checks': {
    spec: { type: 'LoadBalancer', ports: [{ port: 80 }], externalTrafficPolicy: 'Local' },
    want: { ports: [{ port: 80, nodePort: 30_086 }], healthCheckNodePort: 30_087 },
  },
};

for (const [name, { spec, old, subnets = BOTH, taken = {}, want, errors, exhausted }] of Object.entries(cases)) {
  test(name, () => {
    const { addresses = [], ports: takenPorts = [] } = taken;
    const uses: Taken = { hasAddress: (ip) => addresses.includes(ip), hasPort: (port) => takenPorts.includes(port) };
    const result = allocateService(spec, old, { networks: parseServiceNetworks(subnets), taken: uses, pick: () => 0 });
    if (exhausted !== undefined) return assert.deepEqual(result, { exhausted });
    const found = 'errors' in result ? result.errors.map(({ field, message }) => `${field}: ${message}`) : [];
    assert.deepEqual(found, errors ?? []);
    const actual = spec as Record<string, unknown>;
    for (const [field, value] of Object.entries(want ?? {})) assert.deepEqual(actual[field], value, field);
    if (spec.type === 'ExternalName') assert.equal(spec.clusterIP, undefined);
  });
}

const badSubnets: Record<string, [readonly string[], RegExp]> = {
  'two subnets of one family': [
    ['10.96.0.0/16', '10.97.0.0/16'],
    /expected one subnet, or one of IPv4 and one of IPv6/,
  ],
  'no subnet': [[], /expected one subnet/],
  'a subnet with two addresses': [['10.96.0.0/31'], /fewer than 4 addresses/],
  'an address with bits after the prefix': [['10.96.0.1/16'], /the network is 10\.96\.0\.0\/16/],
};

for (const [name, [subnets, message]] of Object.entries(badSubnets)) {
  test(`service subnets: refuses ${name}`, () => {
    assert.throws(() => parseServiceNetworks(subnets), message);
  });
}
