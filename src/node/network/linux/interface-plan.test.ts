import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { parseInterfaceAddress, parseIpAddress } from '#lib/ip-address.ts';
import { dnsmasqConfig } from '#node/network/linux/dhcp/dnsmasq-config.ts';
import { planInterface, type InterfacePlan, type InterfaceFacts } from '#node/network/linux/interface-plan.ts';
import { announceScript, podScript, serveCommands, tapCommands } from '#node/network/linux/pod-script.ts';
import { bridgeRules } from '#node/network/linux/rules/bridge-rules.ts';
import { masqueradeRules } from '#node/network/linux/rules/masquerade-rules.ts';
import { silentRules } from '#node/network/linux/rules/silent-rules.ts';
import type { TapRequest } from '#node/network/pod-networks.ts';

const FACTS: InterfaceFacts = {
  addresses: ['10.244.0.5/16', 'fd00::5/64'].map((text) => parseInterfaceAddress(text)),
  gateways: ['10.244.0.1', 'fd00::1'].map((text) => parseIpAddress(text)),
  nameservers: ['10.244.0.1', 'fd00::1'].map((text) => parseIpAddress(text)),
  mtu: 1450,
  gatewayMac: '0a:58:00:00:00:01',
};
const onlyV4: InterfaceFacts = { ...FACTS, addresses: FACTS.addresses.slice(0, 1) };
const onlyV6: InterfaceFacts = { ...FACTS, addresses: FACTS.addresses.slice(1) };

function aTap(attachment: Partial<TapRequest['attachment']> = {}, others: Partial<TapRequest> = {}): TapRequest {
  return {
    tap: 'tap0',
    macAddress: '52:54:00:00:00:05',
    attachment: {
      podInterface: 'eth0',
      network: { type: 'default' },
      binding: 'masquerade',
      guestAddresses: ['10.0.2.2/24', 'fd10:0:2::2/120'],
      ...attachment,
    },
    ...others,
  };
}

const masqueraded = (facts = FACTS, attachment = {}) => planInterface(aTap(attachment), facts);
const bridged = (facts = FACTS) => planInterface(aTap({ binding: 'bridge' }), facts);

/** Returns the lines of one chain, without its hook. */
function chain(rules: string, name: string): string[] {
  const [, body = ''] =
    new RegExp(`chain ${name} \\{\\n([^}]*?)\\n  \\}`, 's').exec(rules.replaceAll(/\{ ([^\n]*?) \}/g, '($1)')) ?? [];
  return body
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => !line.startsWith('type '));
}

describe('the MAC address of a pod', () => {
  const cases: Record<string, { plan: InterfacePlan; mac: string }> = {
    'follows from the IPv4 address': { plan: masqueraded(), mac: '0a:58:0a:f4:00:05' },
    'follows from the IPv6 address if there is no other': { plan: masqueraded(onlyV6), mac: '0a:58:dc:c2:1f:49' },
    'is not that of a bridged guest': { plan: bridged(), mac: '0e:58:52:93:16:2e' },
  };
  for (const [name, { plan, mac }] of Object.entries(cases)) test(name, () => assert.equal(plan.podMac, mac));
});

describe('an interface is refused', () => {
  const cases: Record<string, { tap: TapRequest; facts?: InterfaceFacts; message: RegExp }> = {
    'with a name that is a path': { tap: aTap({ podInterface: '../x' }), message: /"\.\.\/x": a name of a device has/ },
    'with a name that is too long': { tap: aTap({}, { tap: 'tap-of-the-first-guest' }), message: /1 to 15 letters/ },
    'with another text as MAC address': {
      tap: aTap({}, { macAddress: 'x; reboot' }),
      message: /"x; reboot" is not a MAC address/,
    },
    'with too many queues': { tap: aTap({}, { queues: 1000 }), message: /1000 queues; expected 1 to 256/ },
    'with a port that does not exist': {
      tap: aTap({ ports: [{ protocol: 'tcp', port: 70_000 }] }),
      message: /port 70000; expected 1 to 65535/,
    },
    'with a guest at the first address of its network': {
      tap: aTap({ guestAddresses: ['10.0.2.0/24'] }),
      message: /10\.0\.2\.0\/24 has no address before it/,
    },
    'with guest addresses that are none': {
      tap: aTap({ guestAddresses: ['10.0.2.2'] }),
      message: /a prefix length such as \/24 is missing/,
    },
    'with a guest of another family than its pod': {
      tap: aTap({ guestAddresses: ['fd10:0:2::2/120'] }),
      facts: onlyV4,
      message: /guest addresses fd10:0:2::2\/120 do not fit those of the pod: 10\.244\.0\.5/,
    },
  };
  for (const [name, { tap, facts = FACTS, message }] of Object.entries(cases)) {
    test(name, () =>
      assert.throws(() => planInterface(tap, facts), { name: 'PodNetworkError', permanent: true, message }),
    );
  }
});

describe('the rules of masquerade', () => {
  test('translate one to one', () => {
    const rules = masqueradeRules(masqueraded());
    assert.deepEqual(chain(rules, 'to_guest'), [
      'iifname "eth0" ip daddr 10.244.0.5 dnat ip to 10.0.2.2',
      'iifname "eth0" ip6 daddr fd00::5 dnat ip6 to fd10:0:2::2',
    ]);
    assert.deepEqual(chain(rules, 'from_pod'), [
      'oifname "eth0" ip saddr 10.0.2.2 snat ip to 10.244.0.5',
      'oifname "eth0" ip6 saddr fd10:0:2::2 snat ip6 to fd00::5',
    ]);
    assert.deepEqual(chain(rules, 'leaving'), [
      'oifname "eth0" ip saddr 10.244.0.5 accept',
      'oifname "eth0" ip6 saddr fd00::5 accept',
      'oifname "eth0" drop',
    ]);
  });

  test('let connections begin at the listed ports only, and go on at all', () => {
    const ports = [
      { protocol: 'tcp', port: 443 },
      { protocol: 'tcp', port: 80 },
      { protocol: 'udp', port: 53 },
    ] as const;
    assert.deepEqual(chain(masqueradeRules(masqueraded(onlyV4, { ports })), 'to_guest'), [
      'iifname "eth0" ip daddr 10.244.0.5 tcp dport (80, 443) dnat ip to 10.0.2.2',
      'iifname "eth0" ip daddr 10.244.0.5 udp dport (53) dnat ip to 10.0.2.2',
      'iifname "eth0" ip daddr 10.244.0.5 tcp flags & (fin | syn | rst | ack) != syn dnat ip to 10.0.2.2',
      'iifname "eth0" ip daddr 10.244.0.5 icmp type echo-request dnat ip to 10.0.2.2',
    ]);
  });

  test('accept from the guest only its own addresses, of the families that it has', () => {
    const from = (facts: InterfaceFacts) =>
      chain(masqueradeRules(masqueraded(facts)), 'from_guest').filter((rule) => /saddr (?:10|fd)/.test(rule));
    assert.deepEqual(from(onlyV4), ['ip saddr 10.0.2.2 accept']);
    assert.deepEqual(from(onlyV6), ['ip6 saddr fd10:0:2::2 accept']);
  });
});

test('the rules of a bridged guest keep DHCP and router advertisements in its namespace', () => {
  const rules = bridgeRules(bridged());
  assert.deepEqual(chain(rules, 'from_guest'), [
    'ether saddr != 52:54:00:00:00:05 drop',
    'ether type ip udp dport 67 drop',
    'ether type ip6 udp dport 547 drop',
    'icmpv6 type nd-router-solicit drop',
    'accept',
  ]);
  assert.deepEqual(chain(rules, 'router'), [
    'iifname "tap0" ether daddr 02:00:00:00:00:00 ip6 daddr != (fe80::/10, ff00::/8) ether daddr set 0a:58:00:00:00:01',
  ]);
  assert.deepEqual(chain(rules, 'output'), ['oifname ("eth0", "announcer") drop']);
  // A network with its own DHCP: nothing is kept.
  const foreign = bridgeRules(bridged({ addresses: [], gateways: [], nameservers: [], mtu: 1500 }));
  assert.deepEqual(chain(foreign, 'from_guest'), ['ether saddr != 52:54:00:00:00:05 drop', 'accept']);
  assert.deepEqual(chain(foreign, 'guest_input'), ['ether saddr != 52:54:00:00:00:05 drop', 'drop']);
});

test('the silent rules drop in all families and directions', () => {
  const text = silentRules('net1');
  assert.equal(text.match(/iifname "net1" drop/g)?.length, 3);
  assert.equal(text.match(/oifname "net1" drop/g)?.length, 4);
  assert.deepEqual(text.match(/^table \w+ \w+ \{/gm), [
    'table inet selfsame_net1_silent {',
    'table arp selfsame_net1_silent {',
    'table bridge selfsame_net1_silent {',
  ]);
});

describe('the configuration of dnsmasq', () => {
  const options = { pidFile: '/run/x.pid', hostname: 'db', searchDomains: ['default.svc.cluster.local'] };

  test('serves one guest for ever', () => {
    assert.equal(
      dnsmasqConfig([masqueraded()], options),
      `port=0
conf-dir=
bind-interfaces
except-interface=lo
leasefile-ro
no-ping
dhcp-authoritative
quiet-dhcp
quiet-dhcp6
quiet-ra
user=nobody
group=nogroup
pid-file=/run/x.pid
interface=tap0
dhcp-host=52:54:00:00:00:05,id:*,set:eth0,10.0.2.2,[fd10:0:2::2],db,infinite
dhcp-range=set:eth0,10.0.2.2,static,255.255.255.0,infinite
dhcp-option=tag:eth0,option:router,10.0.2.1
dhcp-option=tag:eth0,option:mtu,1450
dhcp-option=tag:eth0,option:dns-server,10.244.0.1
dhcp-option=tag:eth0,option:domain-search,default.svc.cluster.local
enable-ra
dhcp-range=set:eth0,fd10:0:2::2,static,120,infinite
ra-param=tap0,mtu:1450,high,60,9000
dhcp-option=tag:eth0,option6:dns-server,[fd00::1]
dhcp-option=tag:eth0,option6:domain-search,default.svc.cluster.local
`,
    );
  });

  test('ignores names that could be something else, and offers no router if there is none', () => {
    const plan = bridged({ ...onlyV4, gateways: [], nameservers: [] });
    const lines =
      dnsmasqConfig([plan], { ...options, hostname: 'a\nuser=root', searchDomains: ['x,y'] })?.split('\n') ?? [];
    assert.deepEqual(
      lines.filter((line) => /root|x,y|^dhcp-(?:host|option)/.test(line)),
      [
        'dhcp-host=52:54:00:00:00:05,id:*,set:eth0,10.244.0.5,infinite',
        'dhcp-option=tag:eth0,option:router',
        'dhcp-option=tag:eth0,option:mtu,1450',
        'dhcp-option=tag:eth0,option:dns-server',
      ],
    );
  });

  test('is absent if plugins give no addresses', () => {
    assert.equal(
      dnsmasqConfig([bridged({ addresses: [], gateways: [], nameservers: [], mtu: 1500 })], options),
      undefined,
    );
  });
});

describe('the commands in a namespace', () => {
  test('make a tap for the user of the guest', () => {
    const plan = planInterface(aTap({}, { queues: 2 }), onlyV4);
    assert.deepEqual(tapCommands(plan, { uid: 5, gid: 6 }), [
      'link set dev lo up',
      'tuntap add dev tap0 mode tap user 5 multi_queue',
      'link set dev tap0 mtu 1450 address 02:00:00:00:00:00 up',
    ]);
    assert.deepEqual(serveCommands(plan), [
      'address add 10.0.2.1/24 dev tap0',
      'neighbour replace 10.0.2.2 lladdr 52:54:00:00:00:05 dev tap0 nud permanent',
    ]);
  });

  test('give the bridge of a guest the address of its router, for this guest only', () => {
    assert.deepEqual(serveCommands(bridged()), [
      'address add fe80::5e:1f5a:1/64 dev k6t-eth0 nodad',
      'address add 10.244.0.1/32 dev k6t-eth0',
      'route add 10.244.0.5/32 dev k6t-eth0',
      'address add fd00::1/64 dev k6t-eth0 nodad noprefixroute',
    ]);
  });

  test('announce by setting the MAC address to itself', () => {
    assert.match(
      announceScript(masqueraded()),
      /set_net ipv4\/conf\/eth0\/arp_notify 1\n.*ndisc_notify 1\n.*\nlink set dev eth0 address 0a:58:0a:f4:00:05\nEND\n/s,
    );
    assert.match(
      announceScript(bridged()),
      /ip link set dev announced address 52:54:00:00:00:05\nip link delete dev announcer\n$/,
    );
  });

  test('load rules before devices', () => {
    const script = podScript({ ip: ['link set dev lo up'], nft: 'table inet x\n', sysctls: [['ipv4/ip_forward', 1]] });
    assert.ok(script.indexOf('set_net ipv4/ip_forward 1') < script.indexOf('nft -f -'));
    assert.ok(script.indexOf('nft -f -') < script.indexOf('ip -batch -'));
  });
});
