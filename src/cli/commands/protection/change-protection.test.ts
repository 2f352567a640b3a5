import assert from 'node:assert/strict';
import { test } from 'node:test';
import { changeAll } from '#cli/commands/protection/change-protection.ts';
import { UNPROTECT_CHANGE } from '#cli/commands/protection/protection.ts';

interface Case {
  vms: number;
  /** Errors by the number of the VM. */
  errors?: Record<number, string>;
  /** The number of the VM after which the server is unreachable. */
  lost?: number;
  /** The numbers of the VMs that are changed. */
  changed: number[];
  summary?: string;
  message?: string;
}
const cases: Record<string, Case> = {
  'changes any number of VMs and reports them in order': {
    vms: 20,
    changed: Array.from({ length: 20 }, (_, i) => i),
    summary: '20 VMs are no longer protected from deletion',
  },
  'continues with the others if one fails': {
    vms: 10,
    errors: { 0: 'no', 8: 'not found' },
    changed: [1, 2, 3, 4, 5, 6, 7, 9],
    summary: '8 VMs are no longer protected from deletion',
    message: 'Cannot unprotect 2 of 10 VMs:\n  lab/vm-0: no\n  lab/vm-8: not found',
  },
  'prints no summary if all fail': {
    vms: 1,
    errors: { 0: 'no' },
    changed: [],
    message: 'Cannot unprotect 1 of 1 VMs:\n  lab/vm-0: no',
  },
  'does not try the rest if the server does not respond': {
    vms: 30,
    lost: 9,
    changed: [0, 1, 2, 3, 4, 5, 6, 7, 8, 10, 11, 12, 13, 14, 15],
    summary: '15 VMs are no longer protected from deletion',
    message: 'Cannot unprotect 1 of 30 VMs:\n  lab/vm-9: gone\n  14 more were not attempted',
  },
};
for (const [title, { vms, errors = {}, lost, changed, summary, message }] of Object.entries(cases)) {
  test(title, async () => {
    const names = Array.from({ length: vms }, (_, i) => ({ namespace: 'lab', name: `vm-${i}` }));
    const lines: string[] = [];
    let [busy, busiest] = [0, 0];
    const running = changeAll(names, UNPROTECT_CHANGE, {
      async changeVm({ name }) {
        busiest = Math.max(busiest, ++busy);
        // Later requests finish sooner.
        const number = Number(name.slice(3));
        for (let turn = number; turn < vms; turn++) await Promise.resolve();
        busy--;
        const unreachable = number === lost;
        return { error: unreachable ? 'gone' : errors[number], unreachable };
      },
      displayName: ({ namespace, name }) => `${namespace}/${name}`,
      print: (line) => void lines.push(line),
    });
    if (message === undefined) await running;
    else await assert.rejects(running, { name: 'CommandError', message });
    const each = changed.map((number) => `VM lab/vm-${number} is no longer protected from deletion`);
    assert.deepEqual(lines, summary === undefined ? each : [...each, summary]);
    assert.ok(busiest <= 8, 'the number of parallel requests is limited');
  });
}
