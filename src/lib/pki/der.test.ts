import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as der from '#lib/pki/der.ts';
import { ipBytes } from '#lib/pki/x509.ts';

const elements: Record<string, [got: Buffer, wantHex: string]> = {
  'an empty sequence has no contents': [der.sequence(), '3000'],
  'a small integer is one byte': [der.integer(2), '020102'],
  'zero is one zero byte': [der.integer(0), '020100'],
  'an integer with its top bit set gets a sign byte': [der.integer(128), '02020080'],
  'a long integer is big-endian': [der.integer(65_537), '0203010001'],
  'leading zeros of bytes are dropped': [der.integer(Buffer.from('0000ff', 'hex')), '020200ff'],
  'true is all ones': [der.boolean(true), '0101ff'],
  'an object identifier packs its first two numbers and splits large ones': [
    der.oid('1.2.840.10045.4.3.2'),
    '06082a8648ce3d040302',
  ],
  'text is UTF-8': [der.utf8String('é'), '0c02c3a9'],
  'a bit string counts its unused bits': [der.bitString(Buffer.from([0x80]), 7), '03020780'],
  'named bits drop trailing zeros': [der.namedBits([5, 6]), '03020106'],
  'the first named bit is the highest': [der.namedBits([0]), '03020780'],
  'a year before 2050 is UTCTime': [
    der.timeElement(Date.UTC(2049, 11, 31, 23, 59, 59)),
    `170d${Buffer.from('491231235959Z').toString('hex')}`,
  ],
  'a year from 2050 on is GeneralizedTime': [
    der.timeElement(Date.UTC(2050, 0, 1)),
    `180f${Buffer.from('20500101000000Z').toString('hex')}`,
  ],
  'an explicit tag wraps': [der.explicit(0, der.integer(2)), 'a003020102'],
  'an implicit tag replaces': [der.implicit(2, Buffer.from('a')), '820161'],
  'a length over 127 is long form': [der.octetString(Buffer.alloc(200)), `0481c8${'00'.repeat(200)}`],
  'a length over 255 has two bytes': [der.octetString(Buffer.alloc(300)), `0482012c${'00'.repeat(300)}`],
};

for (const [name, [got, wantHex]] of Object.entries(elements)) {
  test(name, () => assert.equal(got.toString('hex'), wantHex));
}

const addresses: Record<string, string> = {
  '127.0.0.1': '7f000001',
  '::': '0'.repeat(32),
  '::1': `${'0'.repeat(31)}1`,
  'fe80::1%eth0': 'fe800000000000000000000000000001',
  '2001:db8:1:2:3:4:5:6': '20010db8000100020003000400050006',
  '2001:db8::': `20010db8${'0'.repeat(24)}`,
  '::ffff:10.0.0.1': '00000000000000000000ffff0a000001',
};

for (const [address, wantHex] of Object.entries(addresses)) {
  test(`writes ${address} as bytes`, () => assert.equal(ipBytes(address).toString('hex'), wantHex));
}
