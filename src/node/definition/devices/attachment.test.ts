import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Interface, Network } from '#api/domain/interface.ts';
import type { VmiSpec } from '#api/virtual-machine-instance/spec.ts';
import { defineDomain } from '#node/definition/define-domain.ts';
import type { NetworkFacts } from '#node/definition/devices/attachment.ts';
import { anInput, aVmi } from '#node/definition/testing/a-vmi.ts';
import type { InterfaceBackend } from '#node/hardware/domain-definition.ts';

const FACTS: NetworkFacts = {
  pod: { namespace: 'default', name: 'virt-launcher-db', uid: 'a-pod' },
  podNetwork: { type: 'default' },
  addresses: { default: ['10.244.0.5/16', 'fd00::5/64'] },
  definitions: new Map([['lan', '{"plugins":[{"type":"bridge"}]}']]),
};
const POD: Network = { name: 'default', pod: {} };
const MASQUERADE: Interface = { name: 'default', masquerade: {} };
const ATTACHED = { podInterface: 'eth0', network: { type: 'default' }, addresses: FACTS.addresses['default'] };

function define(
  interfaces: Interface[],
  networks: Network[],
  facts: Partial<NetworkFacts> = {},
  spec: Partial<VmiSpec> = {},
) {
  const vmi = aVmi({ devices: { interfaces } }, { ...spec, networks });
  const { definition, problems = [] } = defineDomain(anInput(vmi, { network: { ...FACTS, ...facts } }));
  const backends = definition?.devices.flatMap((device) => (device.type === 'interface' ? [device.backend] : []));
  return {
    backends,
    network: definition?.network,
    problems: problems.map(({ field, message }) => `${field}: ${message}`),
  };
}

const accepted: Record<string, { args: Parameters<typeof define>; want: InterfaceBackend[] }> = {
  'masquerade: the guest has private addresses of both families': {
    args: [[MASQUERADE], [POD]],
    want: [
      {
        type: 'pod',
        tap: 'tap0',
        attachment: {
          ...ATTACHED,
          binding: 'masquerade',
          guestAddresses: ['10.0.2.2/24', 'fd10:0:2::2/120'],
        } as never,
      },
    ],
  },
  'masquerade with a network of one family, another private network, and ports': {
    args: [
      [{ ...MASQUERADE, ports: [{ port: 80 }, { port: 53, protocol: 'UDP' }] }],
      [{ name: 'default', pod: { vmNetworkCIDR: '192.168.9.0/24' } }],
      { addresses: { default: ['10.244.0.5/16'] } },
    ],
    want: [
      {
        type: 'pod',
        tap: 'tap0',
        attachment: {
          podInterface: 'eth0',
          network: { type: 'default' },
          binding: 'masquerade',
          addresses: ['10.244.0.5/16'],
          guestAddresses: ['192.168.9.2/24'],
          ports: [
            { protocol: 'tcp', port: 80 },
            { protocol: 'udp', port: 53 },
          ],
        },
      },
    ],
  },
  'bridge: the guest has the addresses of the pod': {
    args: [[{ name: 'default', bridge: {} }], [POD]],
    want: [{ type: 'pod', tap: 'tap0', attachment: { ...ATTACHED, binding: 'bridge' } as never }],
  },
  'a second pod network is in user mode': {
    args: [
      [{ name: 'b', masquerade: {} }, MASQUERADE],
      [POD, { name: 'b', pod: {} }],
    ],
    want: [
      { type: 'user' },
      {
        type: 'pod',
        tap: 'tap0',
        attachment: {
          ...ATTACHED,
          binding: 'masquerade',
          guestAddresses: ['10.0.2.2/24', 'fd10:0:2::2/120'],
        } as never,
      },
    ],
  },
};

for (const [name, { args, want }] of Object.entries(accepted)) {
  test(name, () => assert.deepEqual(define(...args), { ...define(...args), backends: want, problems: [] }));
}

test('a secondary network has names that depend on the interface alone', () => {
  const lan: Network = { name: 'lan', multus: { networkName: 'lan' } };
  const { backends: [alone] = [] } = define([{ name: 'lan', bridge: {} }], [lan]);
  const { backends: [, beside] = [] } = define([MASQUERADE, { name: 'lan', bridge: {} }], [POD, lan]);
  assert.deepEqual(alone, beside);
  assert.match(alone?.type === 'pod' ? `${alone.tap} ${alone.attachment.podInterface}` : '', /^tap(.{11}) pod\1$/);
});

test('the guest is named after its instance, and searches names of its namespace', () => {
  assert.deepEqual(define([MASQUERADE], [POD]).network, {
    pod: FACTS.pod,
    hostname: 'db',
    searchDomains: ['default.svc.cluster.local', 'svc.cluster.local', 'cluster.local'],
  });
  const { network } = define([MASQUERADE], [POD], {}, { hostname: 'web', subdomain: 'front' });
  assert.deepEqual([network?.hostname, network?.searchDomains[0]], ['web', 'front.default.svc.cluster.local']);
});

test('reports a missing definition and a missing address', () => {
  const lan: Network = { name: 'other', multus: { networkName: 'nope' } };
  assert.deepEqual(define([{ name: 'other', bridge: {} }], [lan]).problems, [
    'spec.networks: Invalid value: "nope": there is no NetworkAttachmentDefinition of this name',
  ]);
  assert.deepEqual(define([MASQUERADE], [POD], { addresses: {} }).problems, [
    'spec.domain.devices.interfaces[0].name: Invalid value: "default": the pod has no address for this interface; restart the VM',
  ]);
});
