import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as answers from '#node/guest-agent/agent-answers.ts';

test('the OS information is converted to the fields of the API', () => {
  const answer = { id: 'debian', 'pretty-name': 'Debian 12', 'kernel-release': '6.1', version: '', variant: 'x' };
  assert.deepEqual(answers.readOsInfo(answer), { id: 'debian', prettyName: 'Debian 12', kernelRelease: '6.1' });
});

const invalidAnswers = [undefined, null, 5, 'text', [], {}, [5, null], { id: 7, zone: {} }, [{ name: 5, disk: 'x' }]];
test('malformed answers do not cause errors', () => {
  for (const value of invalidAnswers) {
    assert.deepEqual(Object.keys(answers.readOsInfo(value)), []);
    for (const read of [answers.readUsers, answers.readFileSystems, answers.readInterfaces]) {
      assert.ok(Array.isArray(read(value)));
    }
    assert.ok(Array.isArray(answers.readVersion(value).supportedCommands));
    assert.equal(answers.readHostName(value), undefined);
    assert.equal(answers.readTimezone(value), undefined);
  }
});

test('long texts and lists are truncated', () => {
  const [user] = answers.readUsers([{ user: 'x'.repeat(10_000) }]);
  assert.equal(user?.userName.length, 256);
  assert.equal(answers.readUsers(Array.from({ length: 5000 }, () => ({ user: 'x' }))).length, 256);
  const nics = Array.from({ length: 500 }, (_, i) => ({ name: `veth${i}`, 'hardware-address': `02:${i}` }));
  assert.equal(answers.readInterfaces(nics).length, 32);
});

test('a time zone has a name and an offset in seconds', () => {
  assert.equal(answers.readTimezone({ zone: 'CEST', offset: 7200 }), 'CEST, 7200');
  assert.equal(answers.readTimezone({ offset: 0 }), ', 0');
});

test('file systems are converted with their disks', () => {
  const disk = [{ 'bus-type': 'virtio', serial: 'S1', bus: 0 }];
  const answer = [{ name: 'vda1', mountpoint: '/', type: 'ext4', 'used-bytes': 1, 'total-bytes': 2, disk }];
  assert.deepEqual(answers.readFileSystems(answer), [
    {
      diskName: 'vda1',
      mountPoint: '/',
      fileSystemType: 'ext4',
      usedBytes: 1,
      totalBytes: 2,
      disk: [{ busType: 'virtio', serial: 'S1' }],
    },
  ]);
});

const own = [
  { name: 'default', mac: '02:00:00:00:00:0a', infoSource: 'domain' },
  { name: 'other', mac: '02:00:00:00:00:0b', infoSource: 'domain' },
];
test('addresses are assigned by MAC address, IPv4 first and link-local last', () => {
  const reported = answers.readInterfaces([
    { name: 'lo', 'ip-addresses': [{ 'ip-address': '127.0.0.1' }] },
    {
      name: 'eth0',
      'hardware-address': '02:00:00:00:00:0A',
      'ip-addresses': [{ 'ip-address': 'fe80::1' }, { 'ip-address': 'fd00::1' }, { 'ip-address': '10.0.0.1' }],
    },
    { name: 'docker0', 'hardware-address': '02:42:00:00:00:01', 'ip-addresses': [{ 'ip-address': '172.17.0.1' }] },
  ]);
  assert.deepEqual(answers.mergeInterfaces(own, reported), [
    {
      name: 'default',
      mac: '02:00:00:00:00:0a',
      interfaceName: 'eth0',
      ipAddress: '10.0.0.1',
      ipAddresses: ['10.0.0.1', 'fd00::1', 'fe80::1'],
      infoSource: 'domain, guest-agent',
    },
    own[1],
    {
      mac: '02:42:00:00:00:01',
      interfaceName: 'docker0',
      ipAddress: '172.17.0.1',
      ipAddresses: ['172.17.0.1'],
      infoSource: 'guest-agent',
    },
  ]);
  assert.deepEqual(answers.mergeInterfaces(own, undefined), own);
});

test('invalid addresses are left out', () => {
  const addresses = ['10.0.0.1', 'x'.repeat(200), 'localhost', '::1', '10.0.0.1/24'].map((ip) => ({
    'ip-address': ip,
  }));
  assert.deepEqual(answers.readInterfaces([{ name: 'eth0', 'ip-addresses': addresses }])[0]?.addresses, [
    '10.0.0.1',
    '::1',
  ]);
});

test('the first interface with addresses counts if several share a MAC address', () => {
  const named = (name: string, ...ips: string[]) => ({
    ...{ name, 'hardware-address': '02:00:00:00:00:0a' },
    'ip-addresses': ips.map((ip) => ({ 'ip-address': ip })),
  });
  const merge = (...rows: object[]) => answers.mergeInterfaces(own.slice(0, 1), answers.readInterfaces(rows))[0];
  const [card, vlan] = [named('eth0', '10.0.0.1'), named('eth0.5', '10.5.0.1')];
  assert.equal(merge(card, vlan, named('macvlan0'))?.ipAddress, '10.0.0.1');
  const bridged = merge(named('eth0'), named('br0', '10.0.0.7'));
  assert.deepEqual([bridged?.interfaceName, bridged?.ipAddress], ['br0', '10.0.0.7']);
  assert.equal(merge(named('eth0'), named('br0'))?.interfaceName, 'eth0');
});
