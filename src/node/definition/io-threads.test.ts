import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { DomainSpec } from '#api/domain/domain.ts';
import { defineDomain } from '#node/definition/define-domain.ts';
import { anInput, aVmi } from '#node/definition/testing/a-vmi.ts';

interface Case {
  readonly domain: Omit<DomainSpec, 'devices'>;
  /** `!` asks for a dedicated thread, `~` is on SATA. */
  readonly disks: readonly string[];
  readonly threads?: number;
  readonly want: readonly (number | undefined)[];
}

const cases: Record<string, Case> = {
  'assigns no threads without a policy': { domain: {}, disks: ['a', 'b'], want: [undefined, undefined] },
  'assigns one shared thread to all disks': {
    domain: { ioThreadsPolicy: 'shared' },
    disks: ['a', 'b'],
    threads: 1,
    want: [0, 0],
  },
  'assigns one thread to all disks without a dedicated one': {
    domain: {},
    disks: ['a', 'b!', 'c'],
    threads: 2,
    want: [0, 1, 0],
  },
  'assigns only dedicated threads if all disks ask for one': {
    domain: {},
    disks: ['a!', 'b!'],
    threads: 2,
    want: [0, 1],
  },
  'assigns up to two threads for each processor': {
    domain: { ioThreadsPolicy: 'auto', cpu: { cores: 1 } },
    disks: ['a', 'b', 'c', 'd!'],
    threads: 2,
    want: [0, 0, 0, 1],
  },
  'assigns no more threads than disks': {
    domain: { ioThreadsPolicy: 'auto', cpu: { cores: 8 } },
    disks: ['a', 'b'],
    threads: 2,
    want: [0, 1],
  },
  'assigns no threads to disks on other buses': {
    domain: { ioThreadsPolicy: 'shared' },
    disks: ['a~', 'b'],
    threads: 1,
    want: [undefined, 0],
  },
};
for (const [name, { domain, disks, threads, want }] of Object.entries(cases)) {
  test(name, () => {
    const list = disks.map((text) => ({
      name: text[0] ?? '',
      dedicatedIOThread: text.endsWith('!'),
      disk: { bus: text.endsWith('~') ? ('sata' as const) : ('virtio' as const) },
    }));
    const volumes = list.map((disk) => ({ name: disk.name, emptyDisk: { capacity: '1Mi' } }));
    const { definition } = defineDomain(anInput(aVmi({ ...domain, devices: { disks: list } }, { volumes })));
    const found = definition?.devices.flatMap((device) => (device.type === 'disk' ? [device.ioThread] : []));
    assert.deepEqual([definition?.ioThreads, found], [threads, want]);
  });
}
