import assert from 'node:assert/strict';
import { test } from 'node:test';
import { hasOwnMacOnly, idleMacOf } from '#node/network/linux/bindings/own-mac-port.ts';

const link = (info_kind?: string, mode?: string) => ({
  ifname: 'pod1',
  ...(info_kind && { linkinfo: { info_kind, ...(mode && { info_data: { mode } }) } }),
});

const cases: Record<string, { link: ReturnType<typeof link>; want: boolean | RegExp }> = {
  'an end of a veth pair': { link: link('veth'), want: false },
  'a device of the host': { link: link(), want: false },
  'a VLAN': { link: link('vlan'), want: false },
  'a macvlan': { link: link('macvlan', 'bridge'), want: true },
  'a macvlan that has the address of its device': { link: link('macvlan', 'passthru'), want: /use mode "bridge"/ },
  'an ipvlan': { link: link('ipvlan', 'l2'), want: /use the plugin "macvlan" or "bridge"/ },
};

for (const [name, { link: details, want }] of Object.entries(cases)) {
  test(`the binding of ${name}`, () => {
    if (want instanceof RegExp) assert.throws(() => hasOwnMacOnly(details), { message: want, permanent: true });
    else assert.equal(hasOwnMacOnly(details), want);
  });
}

test('a silent interface has another address in each namespace', () => {
  const macs = ['/run/netns/a', '/run/netns/b'].map((namespace) => idleMacOf(namespace, 'pod1'));
  assert.match(macs[0] ?? '', /^0e:58(?::[0-9a-f]{2}){4}$/);
  assert.notEqual(macs[0], macs[1]);
});
