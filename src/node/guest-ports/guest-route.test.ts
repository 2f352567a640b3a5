import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { InterfaceDevice } from '#node/hardware/domain-definition.ts';
import type { AgentInterface } from '#node/guest-agent/agent-answers.ts';
import { findNeighbourMac, findGuestRoute } from '#node/guest-ports/guest-route.ts';

const MAC = '02:00:00:00:00:0a';
const nic = (backend: InterfaceDevice['backend'], macAddress = MAC): InterfaceDevice => ({
  ...{ type: 'interface', id: 'nic-a', name: 'a', model: 'virtio', macAddress, backend },
});
const BRIDGED = nic({ type: 'bridge', bridge: 'br0' });
const onDefinition = (plugin: object) =>
  nic({
    type: 'pod',
    tap: 'tap1',
    attachment: {
      podInterface: 'pod1',
      network: { type: 'cni', config: JSON.stringify({ name: 'lan', plugins: [plugin] }) },
      binding: 'bridge',
    },
  });
const reports = (...addresses: string[]): AgentInterface => ({ mac: MAC, addresses });
const NETWORKS = {
  lo: [{ address: '127.0.0.1', netmask: '255.0.0.0' }],
  eth0: [{ address: '10.9.0.2', netmask: '255.255.0.0' }],
  br0: [
    { address: 'fd00::1', netmask: 'ffff:ffff:ffff:ffff::' },
    { address: '192.168.7.1', netmask: '255.255.255.0' },
  ],
};

const cases: Record<string, { nics: InterfaceDevice[]; reported?: AgentInterface[]; want: string | RegExp }> = {
  'uses QEMU if there is an interface in user mode': {
    nics: [BRIDGED, nic({ type: 'user' }, '02:00:00:00:00:0b')],
    reported: [reports('192.168.7.5')],
    want: 'forward',
  },
  'uses the reported address on a bridge': {
    nics: [BRIDGED],
    reported: [reports('fe80::1', '192.168.7.5')],
    want: 'br0 192.168.7.1 to 192.168.7.5',
  },
  'uses the first address in a network of the node': {
    nics: [BRIDGED],
    reported: [reports('172.17.0.1', '192.168.7.5')],
    want: 'br0 192.168.7.1 to 192.168.7.5',
  },
  'uses the bridge that a definition names': {
    nics: [onDefinition({ type: 'bridge', bridge: 'br0' })],
    reported: [reports('192.168.7.5')],
    want: 'br0 192.168.7.1 to 192.168.7.5',
  },
  'does not use a bridge on which the guest is in another VLAN': {
    nics: [onDefinition({ type: 'bridge', bridge: 'br0', vlan: 7 })],
    reported: [reports('192.168.7.5')],
    want: /its IPv4 address is unknown/,
  },
  'knows no bridge of a macvlan': {
    nics: [onDefinition({ type: 'macvlan', master: 'eth0' })],
    reported: [reports('10.9.0.3')],
    want: /its IPv4 address is unknown/,
  },
  'ignores interfaces that only the guest knows': {
    nics: [BRIDGED],
    reported: [{ mac: '02:42:00:00:00:01', addresses: ['192.168.7.6'] }, { addresses: ['192.168.7.7'] }],
    want: /its IPv4 address is unknown; run a guest agent \(qemu-ga\) in the guest, or add an interface in user mode/,
  },
  'has no route without a guest agent': { nics: [BRIDGED], want: /run a guest agent/ },
  'does not connect to the node itself': {
    nics: [BRIDGED],
    reported: [reports('192.168.7.1')],
    want: /its node has no address in the network of 192\.168\.7\.1 on bridge "br0"/,
  },
  'does not connect to the loopback of the node': {
    nics: [BRIDGED],
    reported: [reports('127.0.0.1')],
    want: /has no address in the network/,
  },
  'does not connect to another network of the node': {
    nics: [BRIDGED],
    reported: [reports('10.9.0.3')],
    want: /has no address in the network/,
  },
  'ignores invalid and IPv6 addresses': {
    nics: [BRIDGED],
    reported: [reports('localhost', '::1')],
    want: /IPv4 address is unknown/,
  },
  'has no route to a guest without interfaces': { nics: [], want: /it has no interface/ },
};
for (const [sentence, { nics, reported, want }] of Object.entries(cases)) {
  test(sentence, () => {
    const route = findGuestRoute({ devices: nics }, reported, NETWORKS);
    const text = route.is === 'bridge' ? `${route.bridge} ${route.from} to ${route.address}` : route.is;
    if (typeof want === 'string') assert.equal(text, want);
    else assert.match(route.is === 'none' ? route.why : text, want);
  });
}

test('the MAC address of a neighbour is read for the given bridge', () => {
  const table = [
    'IP address       HW type     Flags       HW address            Mask     Device',
    '192.168.7.5      0x1         0x2         02:00:00:00:00:FF     *        eth0',
    '192.168.7.5      0x1         0x2         02:00:00:00:00:0A     *        br0',
    '',
  ].join('\n');
  assert.equal(findNeighbourMac(table, { address: '192.168.7.5', bridge: 'br0' }), MAC);
  assert.equal(findNeighbourMac(table, { address: '192.168.7.6', bridge: 'br0' }), '');
});
