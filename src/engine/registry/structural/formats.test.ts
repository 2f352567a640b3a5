import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { formatCheck, supportedFormat } from '#engine/registry/structural/formats.ts';

const cases: Record<string, { good: string[]; bad: string[] }> = {
  'date-time': {
    good: ['2026-11-15T19:55:49Z', '2024-02-29t00:00:00.123456+01:00', '2026-01-31T23:59:59Z'],
    bad: [
      '',
      '2026-11-15',
      '2023-02-29T00:00:00Z',
      '2026-13-01T00:00:00Z',
      '2026-01-01T24:00:00Z',
      '2026-01-01T00:00:00',
    ],
  },
  date: { good: ['2026-11-15'], bad: ['2026-11-31', '2026-00-10', '26-01-01', '2026-1-1'] },
  uuid: {
    good: ['6a1a24a1-4061-4607-8bf4-a3963d0c5895', '6A1A24A1406146078BF4A3963D0C5895'],
    bad: ['', '6a1a24a1', 'g1a24a14-0614-6078-bf4a-3963d0c58951'],
  },
  uuid4: { good: ['6a1a24a1-4061-4607-8bf4-a3963d0c5895'], bad: ['6a1a24a1-4061-5607-8bf4-a3963d0c5895'] },
  ipv4: { good: ['10.0.0.1', '010.0.0.1'], bad: ['10.0.0', '10.0.0.256', '::1'] },
  ipv6: { good: ['::1', 'fe80::1'], bad: ['10.0.0.1', 'fe80::zz'] },
  cidr: { good: ['10.0.0.0/8', 'fd00::/64'], bad: ['10.0.0.0', '10.0.0.0/33', 'fd00::/129', '/8'] },
  mac: { good: ['02:00:00:00:00:01', '02-00-00-00-00-01', '0200.0000.0001'], bad: ['02:00:00', '02:00-00:00:00:01'] },
  byte: { good: ['', 'aGk=', 'aGVsbG8h'], bad: ['aGk', 'a b=', 'a===', '!'] },
  hostname: { good: ['localhost', 'a.example.com', '1a.example.com'], bad: ['', '-a', 'a..b', 'a.b1', 'a_b'] },
  email: { good: ['a@b.c', 'A <a@b.c>'], bad: ['a', '@b', 'a@b@c'] },
  uri: { good: ['https://a/b?c', '/a/b'], bad: ['', 'a b', 'https://a b', 'relative'] },
  duration: { good: ['1h30m', '1.5s', '0', '22 ns', '3 days'], bad: ['', 'x', '5', 'soon'] },
  isbn: { good: ['0321751043', '978-0321751041'], bad: ['0321751044', '978'] },
  creditcard: { good: ['4111 1111 1111 1111'], bad: ['4111 1111 1111 1112', '1'] },
  hexcolor: { good: ['#fff', 'AABBCC'], bad: ['#ff', '#gggggg'] },
  rgbcolor: { good: ['rgb(1, 2, 255)'], bad: ['rgb(1,2,256)', '1,2,3'] },
  ssn: { good: ['111-11-1111'], bad: ['1-1-1'] },
  bsonobjectid: { good: ['507f1f77bcf86cd799439011'], bad: ['507f'] },
  password: { good: ['', 'anything'], bad: [] },
};

describe('formats', () => {
  for (const [format, { good, bad }] of Object.entries(cases)) {
    it(`distinguishes valid from invalid: ${format}`, () => {
      const fits = formatCheck(format);
      assert.ok(fits);
      assert.deepEqual(
        good.filter((value) => !fits(value)),
        [],
      );
      assert.deepEqual(
        bad.filter((value) => fits(value)),
        [],
      );
    });
  }

  it('applies a format only to its own type', () => {
    assert.equal(supportedFormat({ type: 'integer', format: 'int32' }), 'int32');
    assert.equal(supportedFormat({ type: 'integer', format: 'uuid' }), undefined);
    assert.equal(supportedFormat({ type: 'string', format: 'int32' }), undefined);
    assert.equal(supportedFormat({ type: 'object', format: 'uuid' }), undefined);
  });
});
