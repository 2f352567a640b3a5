import assert from 'node:assert/strict';
import { test } from 'node:test';
import { guestBoundsOf, guestRangeOf, parseGuestSubnets } from '#api/network/guest-subnets.ts';
import { formatIpAddress, formatIpNetwork, parseIpNetwork } from '#lib/ip-address.ts';

const cases: Record<string, { readonly subnets: readonly string[]; readonly want: readonly string[] | string }> = {
  'one of IPv4': { subnets: ['10.244.0.0/16'], want: ['10.244.0.0/16'] },
  'both families': { subnets: ['fd00::/64', '10.0.0.0/8'], want: ['fd00::/64', '10.0.0.0/8'] },
  none: { subnets: [], want: 'at least one subnet is required, such as 10.244.0.0/16' },
  'two of one family': {
    subnets: ['10.1.0.0/16', '10.2.0.0/16'],
    want: '10.1.0.0/16 and 10.2.0.0/16 are both IPv4; give at most one subnet of IPv4 and one of IPv6',
  },
  'an address without a prefix': {
    subnets: ['10.244.0.0'],
    want: '"10.244.0.0" is not a subnet: a prefix length such as /24 is missing; write it like 10.244.0.0/16 or fd00:10:244::/64',
  },
  'bits after the prefix': {
    subnets: ['10.244.0.1/16'],
    want: '"10.244.0.1/16" is not a subnet: the network is 10.244.0.0/16; write it like 10.244.0.0/16 or fd00:10:244::/64',
  },
  'too small': { subnets: ['10.0.0.0/29'], want: 'subnet 10.0.0.0/29 needs a prefix length between /8 and /28' },
  'too large': { subnets: ['fc00::/7'], want: 'subnet fc00::/7 needs a prefix length between /48 and /120' },
  loopback: {
    subnets: ['127.1.0.0/16'],
    want: 'subnet 127.1.0.0/16 is in 127.0.0.0/8, which is reserved; choose another one',
  },
};

for (const [title, { subnets, want }] of Object.entries(cases)) {
  test(`parses subnets: ${title}`, () => {
    const parsed = parseGuestSubnets(subnets);
    assert.deepEqual(typeof parsed === 'string' ? parsed : parsed.map(formatIpNetwork), want);
  });
}

test('the first addresses, and the last of IPv4, are not for guests', () => {
  const bounds = (text: string) => guestBoundsOf(parseIpNetwork(text)).map(formatIpAddress).join(' ');
  assert.equal(bounds('10.244.0.0/16'), '10.244.0.16 10.244.255.254');
  assert.equal(bounds('10.50.0.0/28'), '10.50.0.4 10.50.0.14');
  assert.equal(bounds('fd00::/120'), 'fd00::10 fd00::ff');
  assert.equal(guestRangeOf(parseIpNetwork('10.50.0.0/28')).count, 11n);
});
