/** Compares the rules with the texts below testing/, so that each change of a rule is seen in a review. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { parseIpAddress } from '#lib/ip-address.ts';
import { buildBridgeRules, buildPortElements } from '#node/network/linux/host/bridge-rules.ts';
import { buildDnsConfiguration } from '#node/network/linux/host/dns-server.ts';
import { buildGuardElements, buildGuardRules } from '#node/network/linux/host/guard-rules.ts';
import { buildHostRules } from '#node/network/linux/host/host-rules.ts';
import { aNetworkPlan } from '#node/network/linux/host/testing/sample-plan.ts';

const golden = (name: string) => readFileSync(join(import.meta.dirname, 'testing', name), 'utf8');

const texts: Record<string, string> = {
  'bridge-rules.nft': buildBridgeRules(aNetworkPlan()),
  'host-rules.nft': buildHostRules(aNetworkPlan()),
  'host-rules-ipv4.nft': buildHostRules(aNetworkPlan(['10.244.0.0/16'])),
  'guard-rules.nft': buildGuardRules(),
  'dnsmasq.conf': buildDnsConfiguration(aNetworkPlan(), '/run/selfsame', 'dnsmasq'),
};

for (const [name, text] of Object.entries(texts)) {
  test(`the rules are those of ${name}`, () => assert.equal(text, golden(name)));
}

test('a port has elements for its MAC address and its addresses of both families', () => {
  const port = {
    hostInterface: 's0123abcdg1',
    macAddress: '02:00:00:00:00:AA',
    addresses: ['10.244.0.5', 'fd12:3456:789a::5'].map(parseIpAddress),
  };
  assert.deepEqual(buildPortElements(port), {
    macs: ['"s0123abcdg1" . 02:00:00:00:00:aa'],
    addresses4: ['"s0123abcdg1" . 10.244.0.5'],
    addresses6: ['"s0123abcdg1" . fd12:3456:789a::5'],
    targets6: ['"s0123abcdg1" . 0xfd123456789a00000000000000000005'],
  });
});

test('a guard deletes only what it found before', () => {
  const before = { interfaces4: ['eth0', 'eth1'], interfaces6: [], isEverywhere6: true };
  const guard = { interfaces4: ['eth1'], interfaces6: ['eth1'], isEverywhere6: false };
  assert.equal(
    buildGuardElements({ guard, before }, ['ss-1'], ['br0']),
    `add element inet selfsame_guard bridges { "ss-1" }
add element inet selfsame_guard bridged { "br0" . "br0" }
add element inet selfsame_guard interfaces4 { "eth0" }
delete element inet selfsame_guard interfaces4 { "eth0" }
add element inet selfsame_guard interfaces4 { "eth1" }
add element inet selfsame_guard interfaces6 { "eth1" }
add element inet selfsame_guard everywhere6 { ipv6 }
delete element inet selfsame_guard everywhere6 { ipv6 }
`,
  );
});
