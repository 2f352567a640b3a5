import assert from 'node:assert/strict';
import { test } from 'node:test';
import { decideForwarding } from '#node/network/linux/host/forwarding.ts';
import type { ForwardingGuard } from '#node/network/linux/host/guard-rules.ts';

const NOTHING: ForwardingGuard = { interfaces4: [], interfaces6: [], isEverywhere6: false };

interface Case {
  settings: Record<string, string>;
  families?: (4 | 6)[];
  remembered?: Partial<ForwardingGuard>;
  guard: Partial<ForwardingGuard>;
  written: readonly string[];
}

/** The settings of a host with eth0 and a bridge on which nothing is forwarded. */
const four = { 'ipv4/conf/all/forwarding': '0', 'ipv4/conf/eth0/forwarding': '0', 'ipv4/conf/ss-1/forwarding': '0' };
const forced = {
  'ipv6/conf/all/forwarding': '0',
  'ipv6/conf/all/force_forwarding': '0',
  'ipv6/conf/eth0/force_forwarding': '0',
  'ipv6/conf/ss-1/force_forwarding': '0',
  'ipv6/conf/eth0/accept_ra': '1',
};
const old = {
  'ipv6/conf/all/forwarding': '0',
  'ipv6/conf/default/accept_ra': '1',
  'ipv6/conf/eth0/accept_ra': '1',
  'ipv6/conf/eth1/accept_ra': '0',
  'ipv6/conf/ss-1/accept_ra': '0',
};

const cases: Record<string, Case> = {
  'IPv4: switches on the bridge and the interfaces to the outside, and guards the latter': {
    settings: four,
    families: [4],
    guard: { interfaces4: ['eth0'] },
    written: ['ipv4/conf/ss-1/forwarding=1', 'ipv4/conf/eth0/forwarding=1'],
  },
  'IPv4: writes nothing twice, and keeps the guard': {
    settings: { ...four, 'ipv4/conf/eth0/forwarding': '1', 'ipv4/conf/ss-1/forwarding': '1' },
    families: [4],
    remembered: { interfaces4: ['eth0'] },
    guard: { interfaces4: ['eth0'] },
    written: [],
  },
  'IPv4: does not guard an interface on which somebody else switched it on': {
    settings: { ...four, 'ipv4/conf/eth0/forwarding': '1' },
    families: [4],
    guard: {},
    written: ['ipv4/conf/ss-1/forwarding=1'],
  },
  'IPv4: guards nothing if somebody else made the host a router': {
    settings: { ...four, 'ipv4/conf/all/forwarding': '1', 'ipv4/conf/eth0/forwarding': '1' },
    families: [4],
    remembered: { interfaces4: ['eth0'] },
    guard: {},
    written: ['ipv4/conf/ss-1/forwarding=1'],
  },
  'IPv4: forgets an interface that is gone': {
    settings: four,
    families: [4],
    remembered: { interfaces4: ['eth7'] },
    guard: { interfaces4: ['eth0'] },
    written: ['ipv4/conf/ss-1/forwarding=1', 'ipv4/conf/eth0/forwarding=1'],
  },
  'IPv6: leaves the global switch alone if the kernel can force forwarding on an interface': {
    settings: forced,
    families: [6],
    guard: { interfaces6: ['eth0'] },
    written: ['ipv6/conf/ss-1/force_forwarding=1', 'ipv6/conf/eth0/force_forwarding=1'],
  },
  'IPv6: keeps the guard of another plane': {
    settings: { ...four, ...forced, 'ipv6/conf/eth0/force_forwarding': '1' },
    families: [4],
    remembered: { interfaces6: ['eth0'] },
    guard: { interfaces4: ['eth0'], interfaces6: ['eth0'] },
    written: ['ipv4/conf/ss-1/forwarding=1', 'ipv4/conf/eth0/forwarding=1'],
  },
  'IPv6: changes nothing if somebody else made the host a router': {
    settings: { ...forced, 'ipv6/conf/all/forwarding': '1' },
    families: [6],
    guard: {},
    written: [],
  },
  'IPv6: keeps router advertisements before it switches on an older kernel, and guards everything': {
    settings: old,
    families: [6],
    guard: { isEverywhere6: true },
    written: ['ipv6/conf/eth0/accept_ra=2', 'ipv6/conf/all/forwarding=1'],
  },
  'IPv6: keeps guarding everything on an older kernel': {
    settings: { ...old, 'ipv6/conf/all/forwarding': '1', 'ipv6/conf/eth0/accept_ra': '2' },
    families: [6],
    remembered: { isEverywhere6: true },
    guard: { isEverywhere6: true },
    written: [],
  },
};

const BOTH: readonly (4 | 6)[] = [4, 6];

for (const [name, { settings, families = BOTH, remembered = {}, guard, written }] of Object.entries(cases)) {
  test(name, () => {
    const plan = decideForwarding({
      settings: new Map(Object.entries(settings)),
      bridge: 'ss-1',
      families,
      outside4: ['eth0'],
      outside6: ['eth0'],
      remembered: { ...NOTHING, ...remembered },
    });
    assert.deepEqual(plan.guard, { ...NOTHING, ...guard });
    assert.deepEqual(
      plan.settings.map(([path, value]) => `${path}=${value}`),
      written,
    );
  });
}
