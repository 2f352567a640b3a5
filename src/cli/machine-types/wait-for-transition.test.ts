import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { TransitionJob } from '#api/machine-types/kinds.ts';
import type { EntryNote, PlanEntry } from '#api/machine-types/plan.ts';
import { deletionText } from '#cli/machine-types/deletion-text.ts';
import type { Transition } from '#cli/machine-types/read-transitions.ts';
import { transitionsText } from '#cli/machine-types/transition-table.ts';
import { outcomeText, progressOf, waitForTransition } from '#cli/machine-types/wait-for-transition.ts';
import type { Stored } from '#kube/meta.ts';
import { StatusOutput } from '#lib/terminal/status-output.ts';

function aJob(ended?: { type: string; message?: string }): Stored<TransitionJob> {
  const env = [{ name: 'JOB_GLOB', value: '*rhel8.*' }];
  return {
    apiVersion: 'batch/v1',
    kind: 'Job',
    metadata: { name: 'job-x', uid: 'j', resourceVersion: '1', creationTimestamp: '2026-01-01T00:00:00Z' },
    spec: { template: { spec: { containers: [{ env }] } } },
    status: { conditions: ended === undefined ? [] : [{ status: 'True', ...ended }] },
  };
}

const anEntry = (name: string): PlanEntry => ({
  namespace: 'ns',
  name,
  uid: name,
  act: 'clear',
  from: 'pc-q35-rhel8.2.0',
  to: 'pc-q35-7.2',
});

function aTransition(job: Stored<TransitionJob>, notes: readonly (EntryNote | undefined)[]): Transition {
  const known = notes.flatMap((note, i): [number, EntryNote][] => (note === undefined ? [] : [[i, note]]));
  return { job, configMaps: [], plan: notes.map((_, i) => anEntry(`vm-${i}`)), notes: new Map(known) };
}

const entries = ({ plan = [], notes }: Transition) =>
  plan.map((entry, i) => ({ entry, vm: undefined, note: notes.get(i) ?? { state: 'pending' as const } }));

const done: EntryNote = { state: 'done' };
const failed: EntryNote = { state: 'failed', reason: 'out of memory' };
const COMPLETE = aJob({ type: 'Complete' });

const lines: Record<string, { transition: Transition; want: string }> = {
  'no plan yet': {
    transition: { job: aJob(), configMaps: [], plan: undefined, notes: new Map() },
    want: 'job-x: Running, no plan yet',
  },
  'a half-finished plan': {
    transition: aTransition(aJob(), [done, undefined]),
    want: 'job-x: 1/2: 1 pending, 1 done, 2m0s left',
  },
  'an empty plan': { transition: aTransition(aJob(), []), want: 'job-x: 0/0: no VM' },
  'all but one': {
    transition: aTransition(aJob(), [...Array.from({ length: 99 }, () => done), { state: 'restarting' }]),
    want: 'job-x: 99/100: 1 restarting, 99 done, 1s left',
  },
};
for (const [title, { transition, want }] of Object.entries(lines)) {
  test(`the progress shows ${title}`, () => assert.equal(progressOf(transition, 120_000).plain, want));
}

test('the progress has a bar on a terminal', () => {
  const { live } = progressOf(aTransition(aJob(), [done, undefined]), 120_000);
  assert.equal(live?.(60), 'job-x [======>      ]  50% 1/2: 1 pending, 1 done, 2m0s left');
});

test('prints the result below the progress on a terminal', async () => {
  const jobs = [aJob(), COMPLETE];
  const api = {
    namespace: 'default',
    get: async (path: string) => (path.includes('/jobs/') ? (jobs.shift() ?? COMPLETE) : { metadata: {}, items: [] }),
  };
  let screen = '';
  const write = (text: string) => (screen += text);
  const clock = {
    now: () => 0,
    elapsed: () => 0,
    after(_: number, run: () => void) {
      queueMicrotask(run);
      return () => {};
    },
  };
  const status = new StatusOutput({ isTTY: true, columns: 80, write }, { clock, env: {} });
  await waitForTransition(api, 'job-x', {
    maxFailures: 0,
    limitMs: 60_000,
    status,
    print: (line) => write(`${line}\n`),
  });
  const [begun, ended, result] = screen
    .split('\r\u001b[2K')
    .flatMap((part) => part.split('\n'))
    .slice(1);
  assert.deepEqual(
    [begun, ended, result],
    [
      'job-x: Running, no plan yet',
      'job-x: Complete, no plan yet',
      '\u001b[?25hJob job-x is complete: it had no plan yet',
    ],
  );
});

test('renders the result', () => {
  assert.equal(outcomeText(aTransition(COMPLETE, [done, done])), 'Job job-x is complete: 2 done');
  const changed: EntryNote = { state: 'done', reason: 'the guest sees other devices: net-0' };
  assert.equal(
    outcomeText(aTransition(COMPLETE, [done, changed])),
    'Job job-x is complete: 2 done\n  ns/vm-1: the guest sees other devices: net-0',
  );
});

test('lists only the first of many entries', () => {
  const stopped: EntryNote = { state: 'done', reason: 'the VM is stopped' };
  const lines = outcomeText(
    aTransition(
      COMPLETE,
      Array.from({ length: 5000 }, () => stopped),
    ),
  ).split('\n');
  assert.deepEqual([lines.length, lines.at(-1)], [52, '  and 4950 more: virtctl update machine-types list job-x']);
});

const failures: Record<string, { transition: Transition; max?: number; want: string }> = {
  'a VM has failed': {
    transition: aTransition(COMPLETE, [done, failed]),
    want: 'Job job-x has ended: 1 done, 1 failed\n  ns/vm-1: out of memory',
  },
  'the job has failed': {
    transition: aTransition(aJob({ type: 'Failed', message: 'too often' }), [undefined]),
    want: 'Job job-x failed (too often): 1 pending\nSee kubectl logs job/job-x -n selfsame-system',
  },
  'the job has failed before its plan': {
    transition: { ...aTransition(aJob({ type: 'Failed', message: 'too often' }), []), plan: undefined },
    want: 'Job job-x failed (too often): it had no plan yet\nSee kubectl logs job/job-x -n selfsame-system',
  },
  'too many VMs have failed, regardless of the state of the job': {
    transition: aTransition(aJob(), [done, failed]),
    max: 0,
    want: 'Job job-x stopped, because more than 0 of its VMs failed: 1 done, 1 failed\n  ns/vm-1: out of memory',
  },
};
for (const [title, { transition, max, want }] of Object.entries(failures)) {
  test(`it is an error when ${title}`, () =>
    assert.throws(() => outcomeText(transition, max), { name: 'CommandError', message: want }));
}

test('list shows jobs and every VM in them', () => {
  const transition = aTransition(aJob(), [done, failed, { state: 'restartRequired' }]);
  const nowMs = Date.parse('2026-01-01T00:03:00Z');
  assert.equal(
    transitionsText([{ transition, entries: entries(transition) }], nowMs),
    `JOB     GLOB       STATUS    VMS   OVER   AGE
job-x   *rhel8.*   Running   3     2      3m

job-x: 1 restart required, 1 done, 1 failed

NAMESPACE   NAME   FROM               TO           STATE              REASON
ns          vm-0   pc-q35-rhel8.2.0   pc-q35-7.2   done               -
ns          vm-1   pc-q35-rhel8.2.0   pc-q35-7.2   failed             out of memory
ns          vm-2   pc-q35-rhel8.2.0   pc-q35-7.2   restart required   -`,
  );
  assert.equal(transitionsText([], nowMs), 'No jobs found.');
  const early = { ...aTransition(aJob({ type: 'Failed', message: 'too often' }), []), plan: undefined };
  assert.match(
    transitionsText([{ transition: early, entries: [] }], nowMs),
    /\njob-x: it failed before it had a plan; nothing was changed: too often\. See kubectl logs job\/job-x -n selfsame-system$/,
  );
});

test('delete reports what was done and what was not', () => {
  const skipped: EntryNote = { state: 'skipped', reason: 'changed meanwhile' };
  const transition = aTransition(aJob(), [done, { state: 'restartRequired' }, undefined, skipped]);
  assert.equal(
    deletionText(transition, entries(transition), 1),
    `Job job-x: 1 pending, 1 restart required, 1 done, 1 skipped.

Not done:
NAMESPACE   NAME   FROM               TO           STATE              REASON
ns          vm-1   pc-q35-rhel8.2.0   pc-q35-7.2   restart required   -
ns          vm-2   pc-q35-rhel8.2.0   pc-q35-7.2   pending            -

1 VM was not changed.
1 VM will get the new type at the next restart; no job waits for it any more.

Failed or skipped:
NAMESPACE   NAME   FROM               TO           STATE     REASON
ns          vm-3   pc-q35-rhel8.2.0   pc-q35-7.2   skipped   changed meanwhile

Cleared machineTypeRestartRequired of 1 VM.`,
  );
  const going = aTransition(aJob(), [{ state: 'restarting' }]);
  assert.match(
    deletionText(going, entries(going), 0),
    /\n1 VM was about to restart; restart those that do not come up/,
  );
  const none = { ...transition, plan: undefined };
  assert.equal(deletionText(none, [], 0), 'Job job-x had no plan yet: nothing was changed.');
  const again = { ...none, job: { ...none.job, spec: { suspend: true } } };
  assert.match(deletionText(again, [], 0), /^Job job-x has no plan any more: /);
});
