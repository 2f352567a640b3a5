import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { HostVm } from '#api/host-api.ts';
import { LIST_USAGE, longText, parseList, vmTableText } from '#cli/host/list-command.ts';

const good: Record<string, { view: string; vmList: string[] }> = {
  '': { view: 'long', vmList: [] },
  long: { view: 'long', vmList: [] },
  table: { view: 'table', vmList: [] },
  'ids vms:a': { view: 'ids', vmList: ['a'] },
  'vms:a,b': { view: 'long', vmList: ['a', 'b'] },
};

for (const [words, want] of Object.entries(good)) {
  test(`list ${words} is understood`, () => {
    assert.deepEqual(parseList(words.split(' ').filter((word) => word !== '')), want);
  });
}

const bad: Record<string, string> = {
  short: 'unknown view "short"; expected one of long, table, ids',
  'vms:': '"vms:" names no VM; expected vms:vmId1,vmId2',
  'table vms:,': '"vms:," names no VM; expected vms:vmId1,vmId2',
  'table ids': 'unexpected argument "ids"; expected vms:vmId1,vmId2',
  'vms:a table': 'unexpected argument "table"',
};

for (const [words, message] of Object.entries(bad)) {
  test(`list ${words} is refused`, () => {
    assert.throws(() => parseList(words.split(' ')), { name: 'UsageError', message });
  });
}

test('the usage is that of vdsm', () => {
  assert.deepEqual(
    LIST_USAGE.trimEnd()
      .split('\n')
      .map((line) => line.trim()),
    [
      'list',
      '[view] [vms:vmId1,vmId2]',
      'Lists all available machines on the specified server.',
      "Optional vms list, should start with 'vms:' and follow with 'vmId1,vmId2,...'",
      'Optional views:',
      '"long"   all available configuration info (Default).',
      '"table"  table output with the fields: vmId, vmName, Status and IP.',
      '"ids"    all vmIds.',
    ],
  );
});

const vm = (vmId: string, vmName: string): HostVm => ({
  vmId,
  vmName,
  status: 'Up',
  emulatedMachine: 'pc',
  memSize: 1,
  smp: '1',
  uuid: vmId,
  devices: [],
});

test('the table marks VMs without a response with a star, and omits removed VMs', () => {
  const stats = [
    { vmId: 'a', status: 'Up' as const, guestIPs: '10.0.0.7' },
    { vmId: 'bb', status: 'Paused' as const, monitorResponse: '-1' },
  ];
  assert.equal(
    vmTableText([vm('a', 'default/db'), vm('bb', 'x'), vm('c', 'gone')], stats),
    ['vmId  vmName      Status   IP', 'a     default/db  Up       10.0.0.7', 'bb    x           Paused*', ''].join(
      '\n',
    ),
  );
});

test('the long view contains every key in order', () => {
  assert.equal(
    longText({ vmName: 'x', vmId: 'a', status: 'Up', devices: [{ type: 'rng' }], memSize: 5 }),
    '\na\n\tStatus = Up\n\tdevices = [{"type":"rng"}]\n\tmemSize = 5\n\tvmName = x\n',
  );
});
