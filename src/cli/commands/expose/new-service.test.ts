import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  buildService,
  parseExposedKind,
  parseExposeFlags,
  type ExposedObject,
  type ExposeFlags,
} from '#cli/commands/expose/new-service.ts';

const FLAGS: ExposeFlags = { name: 'web', port: 80, nodePort: 0 };
const VM: ExposedObject = {
  kind: 'vm',
  name: 'db',
  spec: {
    networks: [{ name: 'lan' }, { name: 'default', pod: {} }],
    domain: {
      devices: { interfaces: [{ name: 'default', ports: [{ port: 22 }, { port: 53, protocol: 'UDP' }] }] },
    },
  },
};
const selector = { 'vm.kubevirt.io/name': 'db' };

const cases: Record<string, { flags?: Partial<ExposeFlags>; exposed?: Partial<ExposedObject>; want: object }> = {
  'one port': { want: { type: 'ClusterIP', ports: [{ protocol: 'TCP', port: 80 }], selector } },
  'all ports of the pod network': {
    flags: { port: 0 },
    want: {
      type: 'ClusterIP',
      ports: [
        { name: 'port-1', protocol: 'TCP', port: 22 },
        { name: 'port-2', protocol: 'UDP', port: 53 },
      ],
      selector,
    },
  },
  'every flag, in any case': {
    flags: {
      targetPort: '8080',
      protocol: 'udp',
      portName: 'dns',
      type: 'nodeport',
      nodePort: 30_001,
      clusterIp: '10.96.0.9',
      externalIp: '192.0.2.1',
      loadBalancerIp: '192.0.2.2',
      ipFamily: 'ipv4,ipv6',
    },
    want: {
      type: 'NodePort',
      clusterIP: '10.96.0.9',
      externalIPs: ['192.0.2.1'],
      loadBalancerIP: '192.0.2.2',
      ipFamilies: ['IPv4', 'IPv6'],
      ipFamilyPolicy: 'PreferDualStack',
      ports: [{ name: 'dns', protocol: 'UDP', port: 80, targetPort: 8080, nodePort: 30_001 }],
      selector,
    },
  },
  'a named target port and a policy': {
    flags: { targetPort: 'http', ipFamilyPolicy: 'RequireDualStack' },
    want: {
      type: 'ClusterIP',
      ipFamilyPolicy: 'RequireDualStack',
      ports: [{ protocol: 'TCP', port: 80, targetPort: 'http' }],
      selector,
    },
  },
  'a name that is longer than a label': {
    exposed: { name: `${'a'.repeat(60)}.--b` },
    want: {
      type: 'ClusterIP',
      ports: [{ protocol: 'TCP', port: 80 }],
      selector: { 'vm.kubevirt.io/name': 'a'.repeat(60) },
    },
  },
  'a replica set': {
    exposed: { kind: 'vmirs', selector: { matchLabels: { app: 'web' } } },
    want: { type: 'ClusterIP', ports: [{ protocol: 'TCP', port: 80 }], selector: { app: 'web' } },
  },
};

for (const [name, { flags, exposed, want }] of Object.entries(cases)) {
  test(`the Service for ${name}`, () => {
    const made = buildService(parseExposeFlags({ ...FLAGS, ...flags }), { ...VM, ...exposed }, 'default');
    assert.deepEqual(made['spec'], want);
    assert.deepEqual(made.metadata, { name: 'web', namespace: 'default' });
  });
}

const refused: Record<string, { flags?: Partial<ExposeFlags>; exposed?: Partial<ExposedObject>; message: RegExp }> = {
  'an unknown protocol': { flags: { protocol: 'SCTP' }, message: /^unknown protocol: SCTP; expected TCP, UDP$/ },
  'an unknown type': { flags: { type: 'ExternalName' }, message: /^unknown service type: ExternalName/ },
  'an unknown family': { flags: { ipFamily: 'IPv5' }, message: /^unknown IPFamily\/s: IPv5/ },
  'an unknown policy': { flags: { ipFamilyPolicy: 'Any' }, message: /^unknown IPFamilyPolicy\/s: Any/ },
  'a node port without a type that has one': { flags: { nodePort: 30_001 }, message: /requires --type NodePort/ },
  'a port out of range': { flags: { port: 70_000 }, message: /between 1 and 65535/ },
  'a machine without ports': { flags: { port: 0 }, exposed: { spec: {} }, message: /couldn't find port via --port/ },
  'a replica set without labels': { exposed: { kind: 'vmirs' }, message: /without any selector labels/ },
  'a replica set with expressions': {
    exposed: {
      kind: 'vmirs',
      selector: { matchLabels: { a: 'b' }, matchExpressions: [{ key: 'c', operator: 'Exists' }] },
    },
    message: /with match expressions/,
  },
};

for (const [name, { flags, exposed, message }] of Object.entries(refused)) {
  test(`refuses ${name}`, () => {
    assert.throws(() => buildService(parseExposeFlags({ ...FLAGS, ...flags }), { ...VM, ...exposed }, 'default'), {
      message,
    });
  });
}

test('kinds have singular, plural and short names', () => {
  const words = ['VM', 'vms', 'VirtualMachine', 'vmi', 'virtualmachineinstances', 'vmirs', 'vmirss'];
  assert.deepEqual(words.map(parseExposedKind), ['vm', 'vm', 'vm', 'vmi', 'vmi', 'vmirs', 'vmirs']);
  assert.throws(() => parseExposedKind('pod'), { message: /^unsupported resource type: pod/ });
});
