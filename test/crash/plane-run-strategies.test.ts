/**
 * Every run strategy on the whole plane: what users and guests do, what the API answers, and the state of the VM
 * afterwards, as `<status>, <instance>, <guest>, <number of guest starts>`.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Loose } from '#test/support/test-api.ts';
import { aVm, startVmPlane, type VmPlane } from '#test/support/vm-plane.ts';

const VMIS = '/apis/kubevirt.io/v1/namespaces/default/virtualmachineinstances';

type VmEvent = 'nothing' | 'start' | 'start paused' | 'stop' | 'restart' | 'shuts down' | 'crashes' | 'VMI deleted';

const RUNS = '409 VM is already running';
const OFF = '409 VM is not running';
const NEVER_RAN = '409 VM is not running: Halted';
const noStart = (strategy: string) => `409 ${strategy} does not support manual start requests`;
const noRestart = (strategy: string) => `409 RunStategy ${strategy} does not support manual restart requests`;
const running = (starts: number) => `Running, VMI Running, running, ${starts}`;
const stopped = (starts: number) => `Stopped, no VMI, no guest, ${starts}`;
const ended = (phase: string) => `Stopped, VMI ${phase}, no guest, 1`;
const PAUSED = 'Paused, VMI Running, paused, 1';

interface Row {
  readonly spec: Loose;
  /** Happens to all VMs of the row first. */
  readonly first?: VmEvent;
  /** By what happens: the answer of the API (empty if no verb is called), the state afterwards, and the spec if it changes. */
  readonly cells: Partial<Record<VmEvent, readonly [answer: string, end: string, spec?: Loose]>>;
}

const ALWAYS = { runStrategy: 'Always' };
const HALTED = { runStrategy: 'Halted' };
const MANUAL = { runStrategy: 'Manual' };
const RERUN = { runStrategy: 'RerunOnFailure' };
const ONCE = { runStrategy: 'Once' };

const neverRuns = (always: Loose): Row['cells'] => ({
  nothing: ['', stopped(0)],
  start: ['202', running(1), always],
  'start paused': ['202', PAUSED, always],
  stop: [OFF, stopped(0)],
  restart: [noRestart('Halted'), stopped(0)],
});

const rows: Record<string, Row> = {
  always: {
    spec: ALWAYS,
    cells: {
      nothing: ['', running(1)],
      start: [RUNS, running(1)],
      'start paused': [RUNS, running(1)],
      stop: ['202', stopped(1), HALTED],
      restart: ['202', running(2)],
      'shuts down': ['', running(2)],
      crashes: ['', running(2)],
      'VMI deleted': ['', running(2)],
    },
  },
  'running-true': {
    spec: { running: true },
    cells: {
      start: [RUNS, running(1)],
      stop: ['202', stopped(1), { running: false }],
      restart: ['202', running(2)],
      crashes: ['', running(2)],
    },
  },
  halted: { spec: HALTED, cells: neverRuns(ALWAYS) },
  'running-false': { spec: { running: false }, cells: neverRuns({ running: true }) },
  'halted-after-stop': {
    spec: ALWAYS,
    first: 'stop',
    cells: { start: ['202', running(2), ALWAYS], stop: [OFF, stopped(1)] },
  },
  manual: {
    spec: MANUAL,
    cells: {
      nothing: ['', stopped(0)],
      start: ['202', running(1)],
      'start paused': ['202', PAUSED],
      stop: [OFF, stopped(0)],
      restart: [NEVER_RAN, stopped(0)],
    },
  },
  'manual-started': {
    spec: MANUAL,
    first: 'start',
    cells: {
      start: [RUNS, running(1)],
      stop: ['202', stopped(1)],
      restart: ['202', running(2)],
      'shuts down': ['', ended('Succeeded')],
      crashes: ['', ended('Failed')],
      'VMI deleted': ['', stopped(1)],
    },
  },
  'rerun-on-failure': {
    spec: RERUN,
    cells: {
      nothing: ['', running(1)],
      start: [RUNS, running(1)],
      stop: ['202', stopped(1)],
      restart: ['202', running(2)],
      'shuts down': ['', stopped(1)],
      crashes: ['', running(2)],
      'VMI deleted': ['', stopped(1)],
    },
  },
  'rerun-after-shutdown': {
    spec: RERUN,
    first: 'shuts down',
    cells: { start: ['202', running(2)], stop: [OFF, stopped(1)], restart: [NEVER_RAN, stopped(1)] },
  },
  once: {
    spec: ONCE,
    cells: {
      nothing: ['', running(1)],
      start: [RUNS, running(1)],
      'start paused': [RUNS, running(1)],
      stop: ['202', stopped(1), HALTED],
      restart: [noRestart('Once'), running(1)],
      'shuts down': ['', ended('Succeeded')],
      crashes: ['', ended('Failed')],
      'VMI deleted': ['', running(2)],
    },
  },
  'once-after-shutdown': {
    spec: ONCE,
    first: 'shuts down',
    cells: { start: [noStart('Once'), ended('Succeeded')], restart: [noRestart('Once'), ended('Succeeded')] },
  },
};

/** Returns the answer to a verb, without the prefix that Kubernetes adds. */
async function trigger(plane: VmPlane, what: VmEvent, vm: string): Promise<string> {
  switch (what) {
    case 'nothing':
      return '';
    case 'start paused':
      return bare(await plane.beginVerb('start', vm, { paused: true }));
    case 'start':
    case 'stop':
    case 'restart':
      return bare(await plane.beginVerb(what, vm));
    case 'shuts down':
      plane.guest(vm).shutDown();
      return '';
    case 'crashes':
      plane.guest(vm).crash('QEMU exited with code 1');
      return '';
    case 'VMI deleted':
      assert.equal((await plane.call('DELETE', `${VMIS}/${vm}`)).status, 200);
      return '';
  }
}

const bare = (answer: string) =>
  answer.replace(/ Operation cannot be fulfilled on virtualmachine.kubevirt.io "[^"]*":/, '');

test('every run strategy reacts to verbs and guest events', async (t) => {
  const plane = await startVmPlane(t);
  for (const [row, { spec, first, cells }] of Object.entries(rows)) {
    await t.test(row, async () => {
      const events = Object.keys(cells) as VmEvent[];
      const vmOf = (what: VmEvent) => `${row}-${what}`.toLowerCase().replaceAll(' ', '-');
      for (const what of events) await plane.beginApply(aVm(vmOf(what), spec));
      await plane.settle();
      for (const what of events) await trigger(plane, first ?? 'nothing', vmOf(what));
      await plane.settle();
      const answers = new Map<VmEvent, string>();
      for (const what of events) answers.set(what, await trigger(plane, what, vmOf(what)));
      await plane.settle();
      for (const [what, [answer, end, endSpec]] of Object.entries(cells) as [VmEvent, [string, string, Loose?]][]) {
        const { template: _, ...found } = (await plane.get('VirtualMachine', vmOf(what))).spec;
        const afterFirst = first === 'stop' ? HALTED : spec;
        assert.deepEqual(
          [answers.get(what), await plane.summaryOf(vmOf(what)), found],
          [answer, end, endSpec ?? afterFirst],
          what,
        );
      }
      for (const what of events)
        await plane.call('DELETE', `/apis/kubevirt.io/v1/namespaces/default/virtualmachines/${vmOf(what)}`);
    });
  }
  await plane.settle();
  for (const kind of ['VirtualMachine', 'VirtualMachineInstance', 'VirtualMachineIdentity', 'Pod']) {
    assert.deepEqual(await plane.list(kind), [], `nothing is left of kind ${kind}`);
  }
  assert.deepEqual(
    plane.nodes.flatMap(({ host }) => [...host.guests()]),
    [],
  );
});
