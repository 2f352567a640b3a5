import assert from 'node:assert/strict';
import { test } from 'node:test';
import { findBridgeProblem } from '#node/network/linux/bindings/existing-bridges.ts';

const LINKS = [{ ifname: 'lo' }, { ifname: 'br0', linkinfo: { info_kind: 'bridge' } }, { ifname: 'eth0' }];
const MISSING = (name: string) =>
  `there is no bridge "${name}" on this node; create it, correct the name in the configuration, or set "isGateway": true there if the plugin should create it`;

const cases: Record<string, { plugin: object; want?: string }> = {
  'a bridge that exists': { plugin: { type: 'bridge', bridge: 'br0' } },
  'a bridge that does not exist': { plugin: { type: 'bridge', bridge: 'br1' }, want: MISSING('br1') },
  'the default of the plugin': { plugin: { type: 'bridge' }, want: MISSING('cni0') },
  'a bridge that the plugin makes': { plugin: { type: 'bridge', bridge: 'br1', isGateway: true } },
  'a bridge with a default route': { plugin: { type: 'bridge', bridge: 'br1', isDefaultGateway: true } },
  'a device that is not a bridge': {
    plugin: { type: 'bridge', bridge: 'eth0', isGateway: true },
    want: '"eth0" is not a bridge on this node',
  },
  'another plugin': { plugin: { type: 'macvlan', master: 'eth7' } },
};

for (const [name, { plugin, want }] of Object.entries(cases)) {
  test(`bridges of a configuration: ${name}`, () => {
    const config = JSON.stringify({ cniVersion: '1.0.0', name: 'lan', plugins: [{ type: 'tuning' }, plugin] });
    assert.equal(findBridgeProblem(config, LINKS), want);
  });
}
