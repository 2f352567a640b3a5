/** Tests of addresses as text, boot sequences, names and paths. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { parseAddressText, placeKey, printAddressText } from '#formats/address-text.ts';
import {
  sequenceNumber,
  assignBootOrders,
  parseSequence,
  deriveSequence,
  sequenceByNumber,
  type BootCandidate,
} from '#formats/boot-sequence.ts';
import { UniqueNames, toLabel } from '#formats/device-names.ts';
import { checkPath } from '#lib/files/safe-path.ts';
import { nameErrors } from '#kube/names.ts';

const pci = { type: 'pci', slot: '0x01', bus: '0x00', domain: '0x0000', function: '0x1' };

const addresses: Record<string, { text: string; want: Record<string, string> | undefined }> = {
  'the order of oVirt 4.1': { text: '{slot=0x01, bus=0x00, domain=0x0000, type=pci, function=0x1}', want: pci },
  'the order of oVirt 4.2': { text: '{type=pci, slot=0x01, bus=0x00, domain=0x0000, function=0x1}', want: pci },
  'a text without braces': { text: 'k=v', want: { k: 'v' } },
  'an empty value': { text: 'k1=v1,k2=', want: { k1: 'v1', k2: '' } },
  'a key without an equals sign': { text: 'text', want: { text: '' } },
  'an empty text': { text: '', want: {} },
  'empty braces': { text: '{}', want: {} },
  'a repeated key': { text: '{a=1, a=2}', want: undefined },
  'an invalid key': { text: '{__proto__=1}', want: undefined },
};

for (const [name, { text, want }] of Object.entries(addresses)) {
  test(`parses an address: ${name}`, () => assert.deepEqual(parseAddressText(text), want));
}

test('prints addresses in the order of oVirt 4.2, and none that the text cannot represent', () => {
  assert.equal(printAddressText(pci), '{type=pci, slot=0x01, bus=0x00, domain=0x0000, function=0x1}');
  assert.equal(
    printAddressText({ unit: '0', target: '0', controller: '0', bus: '1', type: 'drive' }),
    '{type=drive, bus=1, controller=0, target=0, unit=0}',
  );
  assert.equal(printAddressText({ type: 'ccw', ssid: '0x0', cssid: '0xfe' }), '{type=ccw, cssid=0xfe, ssid=0x0}');
  assert.equal(printAddressText({}), '');
  assert.equal(printAddressText({ a: 'b,c' }), undefined);
});

test('parses printed addresses without loss', () => {
  const word = fc.stringMatching(/^[a-z0-9x]{1,8}$/);
  fc.assert(
    fc.property(fc.dictionary(word, word), (address) => {
      assert.deepEqual(parseAddressText(printAddressText(address) ?? '-'), { ...address });
    }),
  );
});

test('places are equal regardless of the notation of their numbers', () => {
  assert.equal(
    placeKey(pci),
    placeKey({ type: 'pci', domain: '0', bus: '0x0', slot: '1', function: '1', multifunction: 'on' }),
  );
  assert.notEqual(placeKey(pci), placeKey({ ...pci, function: '0x0' }));
  assert.equal(placeKey({}), undefined);
  assert.equal(placeKey(undefined), undefined);
  assert.equal(typeof placeKey({ type: 'constructor', x: '1' }), 'string');
});

test('derives boot orders from the sequence', () => {
  const candidates: BootCandidate[] = [
    { id: 'boot', kind: 'disk', plugged: true, boot: true },
    { id: 'cd', kind: 'cdrom', plugged: true },
    { id: 'nic1', kind: 'nic', plugged: true },
    { id: 'nic2', kind: 'nic', plugged: true },
    { id: 'plain', kind: 'disk', plugged: true },
    { id: 'nic3', kind: 'nic', plugged: false },
  ];
  const orders = (text: string) => Object.fromEntries(assignBootOrders(parseSequence(text) ?? [], candidates));
  assert.deepEqual(orders('dnc'), { cd: 1, nic1: 2, nic2: 3, boot: 4 });
  assert.deepEqual(orders('c'), { boot: 1 });
  assert.deepEqual(orders('N'), { nic1: 1, nic2: 2 });
  const unmarked: BootCandidate[] = [{ id: 'only', kind: 'disk', plugged: true }];
  assert.deepEqual([...assignBootOrders(['c'], unmarked)], [['only', 1]]);
});

test('converts sequences to numbers, and derives them from boot orders', () => {
  for (let n = 0; n < 15; n++) assert.equal(sequenceNumber(sequenceByNumber(n) ?? ''), n);
  assert.equal(sequenceByNumber(6), 'dnc');
  assert.equal(sequenceByNumber(15), undefined);
  assert.equal(parseSequence('cdx'), undefined);
  assert.equal(parseSequence('cc'), undefined);
  assert.equal(
    deriveSequence([{ kind: 'nic', bootOrder: 2 }, { kind: 'cdrom', bootOrder: 1 }, { kind: 'disk' }]),
    'dn',
  );
  assert.equal(deriveSequence([]), 'c');
});

test('converts names to unique labels', () => {
  const names = new UniqueNames();
  assert.equal(names.take('Web_Disk 1', 'disk'), 'web-disk-1');
  assert.equal(names.take('web disk_1', 'disk'), 'web-disk-1-2');
  assert.equal(names.take('Größe', 'disk'), 'gro-e');
  assert.equal(names.take('***', 'disk'), 'disk');
  assert.equal(names.take('', 'disk'), 'disk-2');
  assert.equal(toLabel('x'.repeat(100), 'a').length, 63);
});

test('makes arbitrary names valid and unique', () => {
  fc.assert(
    fc.property(
      fc.array(fc.oneof(fc.string({ unit: 'binary' }), fc.constant('a'.repeat(70))), { maxLength: 20 }),
      (wanted) => {
        const names = new UniqueNames();
        const given = wanted.map((text) => names.take(text, 'device'));
        assert.equal(new Set(given).size, given.length);
        for (const name of given) assert.deepEqual(nameErrors('label', name), []);
      },
    ),
  );
});

test('accepts only paths below the directory of the file', () => {
  for (const path of ['disk.img', 'a/b.qcow2', 'a..b', '.hidden']) assert.equal(checkPath(path), undefined, path);
  for (const path of [
    '',
    '/x',
    '../x',
    'a/../b',
    'a/./b',
    'a//b',
    'a/',
    'c:x',
    'file:///x',
    'a\\b',
    'a\0b',
    'a\nb',
    'x'.repeat(256),
    'é'.repeat(128),
  ]) {
    assert.notEqual(checkPath(path), undefined, JSON.stringify(path));
  }
});
