import { Budget } from '#cel/limits/budget.ts';
import { fault, callForValue, plain, testCalls } from '#cel/extensions/testing/call.ts';
import { cidrLibrary } from '#cel/kubernetes/cidr.ts';
import { ipLibrary } from '#cel/kubernetes/ip.ts';
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { CelOpaque } from '#cel/value.ts';

const budget = () => new Budget(1000);

const ip = (text: string) => callForValue(ipLibrary, 'ip', [text]);
const cidr = (text: string) => callForValue(cidrLibrary, 'cidr', [text]);

const notAnAddress: Record<string, string> = {
  '': 'unable to parse IP',
  somewhere: 'unable to parse IP',
  '192.168.0.1.0': 'IPv4 address too long',
  '192.168.0': 'IPv4 address too short',
  '192.168.0.01': 'IPv4 field has octet with leading zero',
  '192.168.0.256': 'IPv4 field has value >255',
  '192.168..1': 'IPv4 field must have at least one digit (at ".1")',
  '192.168.0.': 'IPv4 field must have at least one digit (at ".")',
  '192.168.0.x': 'unexpected character (at "x")',
  '%eth0': 'missing IPv6 address',
  'fe80::1%': 'zone must be a non-empty string',
  '1:2:3': 'address string too short',
  '1:2:3:4:5:6:7:8:9': 'trailing garbage after address (at "9")',
  '12345::': 'each group must have 4 or fewer digits (at "12345::")',
  '1::2::3': 'multiple :: in address (at ":3")',
  '1:2:3:4:5:6:7::8': 'the :: must expand to at least one field of zeros',
  'g::': 'each colon-separated field must have at least one digit (at "g::")',
  '1:': 'colon must be followed by more characters (at ":")',
  '1x::': 'unexpected character, want colon (at "x::")',
  '::1.2.3': 'IPv4 address too short',
  '1:2:1.2.3.4': 'embedded IPv4 address must replace the final 2 fields of the address (at "1.2.3.4")',
};
for (const [text, why] of Object.entries(notAnAddress)) {
  const shown = JSON.stringify(text);
  testCalls(ipLibrary, {
    [`ip refuses ${shown}`]: [
      'ip',
      [text],
      fault(`IP Address ${shown} parse error during conversion from string: ParseAddr(${shown}): ${why}`),
    ],
    [`isIP says no to ${shown}`]: ['isIP', [text], false],
  });
}

testCalls(ipLibrary, {
  'ip rejects a zone': ['ip', ['fe80::1%eth0'], fault('IP address "fe80::1%eth0" with zone value is not allowed')],
  'ip rejects an IPv4-mapped IPv6 address': [
    'ip',
    ['::ffff:1.2.3.4'],
    fault('IPv4-mapped IPv6 address "::ffff:1.2.3.4" is not allowed'),
  ],
  'isIP accepts IPv4': ['isIP', ['192.168.0.1'], true],
  'isIP accepts IPv6': ['isIP', ['2001:db8::68'], true],
  'an IPv4 address at the end of IPv6 is parsed': ['string', [ip('64:ff9b::1.2.3.4')], '64:ff9b::102:304'],
  'string shortens the longest row of zeros': ['string', [ip('2001:0:0:1:0:0:0:1')], '2001:0:0:1::1'],
  'string does not shorten a single zero': ['string', [ip('2001:db8:0:1:1:1:1:1')], '2001:db8:0:1:1:1:1:1'],
  'string of all zeros': ['string', [ip('0:0:0:0:0:0:0:0')], '::'],
  'string of IPv4': ['string', [ip('10.0.0.255')], '10.0.0.255'],
  'family of IPv4': ['family', [ip('192.168.0.1')], 4n],
  'family of IPv6': ['family', [ip('2001:db8::68')], 6n],
  'isCanonical accepts the short form': ['ip.isCanonical', ['2001:db8::68'], true],
  'isCanonical rejects upper-case letters': ['ip.isCanonical', ['2001:DB8::68'], false],
  'isCanonical rejects uncompressed zeros': ['ip.isCanonical', ['2001:db8:0:0:0:0:0:68'], false],
  'isCanonical of an invalid address is a fault': [
    'ip.isCanonical',
    ['x'],
    fault('IP Address "x" parse error during conversion from string: ParseAddr("x"): unable to parse IP'),
  ],
  'the zero address is unspecified': ['isUnspecified', [ip('0.0.0.0')], true],
  'the address one is not unspecified': ['isUnspecified', [ip('::1')], false],
  'loopback of IPv4': ['isLoopback', [ip('127.3.4.5')], true],
  'loopback of IPv6': ['isLoopback', [ip('::1')], true],
  'other addresses are not loopback': ['isLoopback', [ip('128.0.0.1')], false],
  'link-local multicast of IPv4': ['isLinkLocalMulticast', [ip('224.0.0.1')], true],
  'other multicast of IPv4': ['isLinkLocalMulticast', [ip('224.0.1.1')], false],
  'link-local multicast of IPv6': ['isLinkLocalMulticast', [ip('ff02::1')], true],
  'other multicast of IPv6': ['isLinkLocalMulticast', [ip('ff05::1')], false],
  'link-local unicast of IPv4': ['isLinkLocalUnicast', [ip('169.254.169.254')], true],
  'link-local unicast of IPv6': ['isLinkLocalUnicast', [ip('febf::1')], true],
  'not link-local': ['isLinkLocalUnicast', [ip('fec0::1')], false],
  'global unicast': ['isGlobalUnicast', [ip('192.168.0.1')], true],
  'broadcast is not global': ['isGlobalUnicast', [ip('255.255.255.255')], false],
  'multicast is not global': ['isGlobalUnicast', [ip('ff00::1')], false],
});

const twice =
  'network address parse error during conversion from string: network address parse error during conversion from string: ';
testCalls(cidrLibrary, {
  'cidr requires a slash': ['cidr', ['10.0.0.0'], fault(`${twice}netip.ParsePrefix("10.0.0.0"): no '/'`)],
  'cidr requires a prefix length': [
    'cidr',
    ['192.168.0.0/'],
    fault(`${twice}netip.ParsePrefix("192.168.0.0/"): bad bits after slash: ""`),
  ],
  'cidr rejects a leading zero': [
    'cidr',
    ['10.0.0.0/08'],
    fault(`${twice}netip.ParsePrefix("10.0.0.0/08"): bad bits after slash: "08"`),
  ],
  'cidr rejects a prefix longer than the address': [
    'cidr',
    ['10.0.0.0/33'],
    fault(`${twice}netip.ParsePrefix("10.0.0.0/33"): prefix length out of range`),
  ],
  'cidr reports the problem of the address': [
    'cidr',
    ['10.0.0/8'],
    fault(`${twice}netip.ParsePrefix("10.0.0/8"): ParseAddr("10.0.0"): IPv4 address too short`),
  ],
  'cidr rejects a zone': [
    'cidr',
    ['fe80::1%eth0/64'],
    fault(`${twice}netip.ParsePrefix("fe80::1%eth0/64"): IPv6 zones cannot be present in a prefix`),
  ],
  'cidr rejects IPv4-mapped IPv6': [
    'cidr',
    ['::ffff:1.2.3.0/120'],
    fault(
      'network address parse error during conversion from string: IPv4-mapped IPv6 address "::ffff:1.2.3.0/120" is not allowed',
    ),
  ],
  'isCIDR accepts IPv6': ['isCIDR', ['2001:db8::/32'], true],
  'isCIDR rejects an address': ['isCIDR', ['10.0.0.1'], false],
  'containsIP as text': ['containsIP', [cidr('192.168.0.0/24'), '192.168.0.255'], true],
  'containsIP as address': ['containsIP', [cidr('192.168.0.0/24'), ip('192.168.1.1')], false],
  'a network contains no address of another family': ['containsIP', [cidr('0.0.0.0/0'), ip('::1')], false],
  'a network with prefix length 0 contains all addresses': ['containsIP', [cidr('::/0'), 'ffff::1'], true],
  'containsIP with an invalid address is a fault': [
    'containsIP',
    [cidr('::/0'), 'x'],
    fault('IP Address "x" parse error during conversion from string: ParseAddr("x"): unable to parse IP'),
  ],
  'containsCIDR of a smaller network': ['containsCIDR', [cidr('192.168.0.0/16'), '192.168.10.0/24'], true],
  'containsCIDR of itself': ['containsCIDR', [cidr('10.0.0.0/8'), cidr('10.0.0.0/8')], true],
  'containsCIDR of a larger network': ['containsCIDR', [cidr('10.0.0.0/16'), cidr('10.0.0.0/8')], false],
  'containsCIDR of a different network': ['containsCIDR', [cidr('10.0.0.0/8'), cidr('11.0.0.0/16')], false],
  prefixLength: ['prefixLength', [cidr('::1/128')], 128n],
  'string shows the address unmasked': ['string', [cidr('192.168.0.1/24')], '192.168.0.1/24'],
});

test('networks and their addresses can be compared', () => {
  const network = cidr('192.168.0.1/24');
  const masked = callForValue(cidrLibrary, 'masked', [network]);
  assert.ok(network instanceof CelOpaque && masked instanceof CelOpaque);
  assert.equal(plain(callForValue(cidrLibrary, 'string', [masked])), '192.168.0.0/24');
  assert.equal(network.equals(masked, budget()), false);
  assert.equal(masked.equals(cidr('192.168.0.0/24') as CelOpaque, budget()), true);
  const address = callForValue(cidrLibrary, 'ip', [network]);
  assert.ok(address instanceof CelOpaque);
  assert.equal(address.equals(ip('192.168.0.1') as CelOpaque, budget()), true);
  assert.equal(address.equals(ip('::c0a8:1') as CelOpaque, budget()), false);
});
