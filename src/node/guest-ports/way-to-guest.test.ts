import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { InterfaceDevice } from '#node/definition/domain-definition.ts';
import type { AgentInterface } from '#node/guest-agent/agent-answers.ts';
import { neighbourMac, wayToGuest } from '#node/guest-ports/way-to-guest.ts';

const MAC = '02:00:00:00:00:0a';
const nic = (backend: InterfaceDevice['backend'], macAddress = MAC): InterfaceDevice => ({
  ...{ type: 'interface', id: 'nic-a', name: 'a', model: 'virtio', macAddress, backend },
});
const BRIDGED = nic({ type: 'bridge', bridge: 'br0' });
const told = (...addresses: string[]): AgentInterface => ({ mac: MAC, addresses });
const NETWORKS = {
  lo: [{ address: '127.0.0.1', netmask: '255.0.0.0' }],
  eth0: [{ address: '10.9.0.2', netmask: '255.255.0.0' }],
  br0: [
    { address: 'fd00::1', netmask: 'ffff:ffff:ffff:ffff::' },
    { address: '192.168.7.1', netmask: '255.255.255.0' },
  ],
};

const cases: Record<string, { nics: InterfaceDevice[]; said?: AgentInterface[]; want: string | RegExp }> = {
  'a network inside QEMU is reached through QEMU, whatever else there is': {
    nics: [BRIDGED, nic({ type: 'user' }, '02:00:00:00:00:0b')],
    said: [told('192.168.7.5')],
    want: 'forward',
  },
  'over a bridge at the address that the agent tells': {
    nics: [BRIDGED],
    said: [told('fe80::1', '192.168.7.5')],
    want: 'br0 192.168.7.1 to 192.168.7.5',
  },
  'at the first that its node is a neighbour of': {
    nics: [BRIDGED],
    said: [told('172.17.0.1', '192.168.7.5')],
    want: 'br0 192.168.7.1 to 192.168.7.5',
  },
  'what interfaces tell that only the guest knows of counts for nothing': {
    nics: [BRIDGED],
    said: [{ mac: '02:42:00:00:00:01', addresses: ['192.168.7.6'] }, { addresses: ['192.168.7.7'] }],
    want: /nobody tells an IPv4 address of it; run a guest agent \(qemu-ga\) in it, or give it an interface in user mode/,
  },
  'without an agent nobody knows its address': { nics: [BRIDGED], want: /run a guest agent/ },
  'a guest cannot send its node to the node itself': {
    nics: [BRIDGED],
    said: [told('192.168.7.1')],
    want: /its address 192\.168\.7\.1 is in no network that its node has on the bridge "br0"/,
  },
  'nor to its loopback': { nics: [BRIDGED], said: [told('127.0.0.1')], want: /is in no network/ },
  'nor into another network of the node': { nics: [BRIDGED], said: [told('10.9.0.3')], want: /is in no network/ },
  'what is no address is none': { nics: [BRIDGED], said: [told('localhost', '::1')], want: /nobody tells/ },
  'a guest without interfaces has no ports': { nics: [], want: /it has no interface/ },
};
for (const [name, { nics, said, want }] of Object.entries(cases)) {
  test(name, () => {
    const way = wayToGuest({ devices: nics }, said, NETWORKS);
    const shown = way.is === 'bridge' ? `${way.bridge} ${way.from} to ${way.address}` : way.is;
    if (typeof want === 'string') assert.equal(shown, want);
    else assert.match(way.is === 'none' ? way.why : shown, want);
  });
}

test('who answers for an address is read of the bridge that it is on', () => {
  const table = [
    'IP address       HW type     Flags       HW address            Mask     Device',
    '192.168.7.5      0x1         0x2         02:00:00:00:00:FF     *        eth0',
    '192.168.7.5      0x1         0x2         02:00:00:00:00:0A     *        br0',
    '',
  ].join('\n');
  assert.equal(neighbourMac(table, { address: '192.168.7.5', bridge: 'br0' }), MAC);
  assert.equal(neighbourMac(table, { address: '192.168.7.6', bridge: 'br0' }), '');
});
