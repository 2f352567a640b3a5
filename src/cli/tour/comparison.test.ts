import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ANY_OTHER, compare, comparisonTable, identityView } from '#cli/tour/comparison.ts';
import { lastReport } from '#cli/tour/guest-report.ts';

const CONSOLE = `
GUEST BEGIN boot
GUEST uuid 11111111-2222-4333-8444-555555555555
HB 1 2.00
GUEST serial s-1
GUEST machine pc-q35-7.2
GUEST disk vda pci=0000:03:00.0 serial=data sectors=1 ro=0
GUEST nic eth0 pci=0000:01:00.0 mac=52:54:00:00:00:01 driver=virtio_net
GUEST tpm.nv secret..........
GUEST efi.var var
GUEST bootid b-1
GUEST END boot
`;

test('reads the identity from the report of a guest', () => {
  assert.deepEqual(
    [...identityView(lastReport(CONSOLE)!)],
    [
      ['firmware uuid', '11111111-2222-4333-8444-555555555555'],
      ['serial', 's-1'],
      ['machine type', 'pc-q35-7.2'],
      ['interface eth0', '52:54:00:00:00:01 at 0000:01:00.0'],
      ['disk data', 'at 0000:03:00.0'],
      ['TPM secret', 'secret'],
      ['EFI variable', 'var'],
      ['boot id', 'b-1'],
    ],
  );
});

const cases = {
  'an unchanged value': { before: 'a', after: 'a', requested: {}, want: 'same' },
  'an unrequested change': { before: 'a', after: 'b', requested: {}, want: 'wrong' },
  'an unrequested removal': { before: 'a', after: undefined, requested: {}, want: 'wrong' },
  'an unrequested addition': { before: undefined, after: 'a', requested: {}, want: 'wrong' },
  'a requested change': { before: 'a', after: 'b', requested: { x: 'b' }, want: 'requested' },
  'a wrong change': { before: 'a', after: 'c', requested: { x: 'b' }, want: 'wrong' },
  'a missing change': { before: 'a', after: 'a', requested: { x: 'b' }, want: 'wrong' },
  'a change to any other value': { before: 'a', after: 'b', requested: { x: ANY_OTHER }, want: 'requested' },
  'a missing change to any other value': { before: 'a', after: 'a', requested: { x: ANY_OTHER }, want: 'wrong' },
  'a removal instead of a change': { before: 'a', after: undefined, requested: { x: ANY_OTHER }, want: 'wrong' },
  'a requested removal': { before: 'a', after: undefined, requested: { x: '-' }, want: 'requested' },
  'a requested addition': { before: undefined, after: 'a', requested: { x: 'a' }, want: 'requested' },
} as const;
for (const [title, { before, after, requested, want }] of Object.entries(cases)) {
  test(`compares ${title}`, () => {
    const view = (value: string | undefined) => new Map(value === undefined ? [] : [['x', value]]);
    assert.deepEqual(
      compare(view(before), view(after), requested).map(({ result }) => result),
      [want],
    );
  });
}

test('renders a table', () => {
  const rows = compare(
    new Map([
      ['uuid', '1'],
      ['machine type', 'old'],
    ]),
    new Map([
      ['uuid', '1'],
      ['machine type', 'new'],
    ]),
    {},
  );
  assert.equal(
    comparisonTable(rows),
    [
      '                  before  after',
      '    uuid          1       1      same',
      '    machine type  old     new    WRONG',
      '',
    ].join('\n'),
  );
});
