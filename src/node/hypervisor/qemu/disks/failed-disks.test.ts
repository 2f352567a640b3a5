import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readFailedDisks } from '#node/hypervisor/qemu/disks/failed-disks.ts';
import { aDefinition, aDisk } from '#node/hypervisor/testing/a-definition.ts';

const source = { path: '/a', format: 'raw' } as const;
const devices = [...aDefinition().devices, aDisk('root', 2, source), aDisk('data', 3, source), aDisk('log', 4, source)];
const block = (id: string, status?: string) => ({
  qdev: `/machine/peripheral/${id}/virtio-backend`,
  ...(status === undefined ? {} : { 'io-status': status }),
});

/** Answers of QEMU 7.2 to query-block, shortened. */
const cases: Record<string, { blocks: unknown[]; want: string[] }> = {
  'no disk has an error': { blocks: [block('disk-root', 'ok'), block('disk-data'), { qdev: 'disk-tray' }], want: [] },
  'one disk has no space': {
    blocks: [block('disk-root', 'ok'), block('disk-data', 'nospace')],
    want: ['disk-data noSpace'],
  },
  'several disks have errors': {
    blocks: [block('disk-log', 'failed'), block('disk-root', 'nospace')],
    want: ['disk-root noSpace', 'disk-log failed'],
  },
};

for (const [name, { blocks, want }] of Object.entries(cases)) {
  test(`finds the disks that have paused a guest: ${name}`, async () => {
    const failed = await readFailedDisks({ execute: async () => blocks }, { devices });
    assert.deepEqual(
      failed.map(({ deviceId, cause }) => `${deviceId} ${cause}`),
      want,
    );
  });
}
