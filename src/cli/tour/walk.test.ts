/** Tests that the verdict of the tour detects moved and lost devices, and changes that are missing or wrong. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { parseAllDocuments } from 'yaml';
import { ANY_OTHER, type RequestedChanges } from '#cli/tour/comparison.ts';
import { TourDisplay } from '#cli/tour/display.ts';
import type { GuestReport } from '#cli/tour/guest-report.ts';
import { runSteps } from '#cli/tour/run-tour.ts';
import { buildSteps, type Scene, type TourStep } from '#cli/tour/steps.ts';
import { tourClaim, DISK_CLAIM, newEdits, PLUGGED, RESTORE, SNAPSHOT, tourVm, VM_NAME } from '#cli/tour/tour-vm.ts';
import { FakeClock } from '#lib/testing/fake-clock.ts';

const FIRST: GuestReport = {
  facts: {
    uuid: 'u-1',
    serial: 's-1',
    machine: 'pc-q35-6.2',
    'tpm.nv': 'secret..........',
    'efi.var': 'v',
    bootid: 'b-1',
  },
  pci: [],
  disks: [{ name: 'vda', pci: '0000:02:00.0', serial: 'data', sectors: 1, readonly: false }],
  nics: [{ name: 'eth0', pci: '0000:01:00.0', mac: '02:00:00:00:00:01', driver: 'virtio_net' }],
  cloudInit: {},
};

const facts = (more: Record<string, string>): GuestReport => ({ ...FIRST, facts: { ...FIRST.facts, ...more } });
const rebooted = facts({ bootid: 'b-2' });
const NEW_BOOT: RequestedChanges = { 'boot id': ANY_OTHER };

function aStep(title: string, report: GuestReport, requested: RequestedChanges = {}): TourStep {
  return { title, command: 'true', run: async () => ({ report, requested }) };
}

async function verdictOf(second: TourStep): Promise<{ same: boolean; text: string }> {
  let text = '';
  const clock = new FakeClock();
  const display = new TourDisplay({ write: (more) => void (text += more) }, { clock, env: {} });
  const scene = {} as Omit<Scene, 'before'>;
  const same = await runSteps([aStep('Create it', FIRST), second], scene, { display, clock });
  return { same, text };
}

const movedDisk = { ...rebooted, disks: [{ ...FIRST.disks[0]!, pci: '0000:03:00.0' }] };
const otherMac = { ...rebooted, nics: [{ ...FIRST.nics[0]!, mac: '02:00:00:00:00:02' }] };

const cases: Record<string, { step: TourStep; wrong?: string }> = {
  'nothing but a new boot': { step: aStep('Restart the VM', rebooted, NEW_BOOT) },
  'a disk that moved': {
    step: aStep('Restart the VM', movedDisk, NEW_BOOT),
    wrong: 'disk data was "at 0000:02:00.0" and is "at 0000:03:00.0"',
  },
  'another MAC': { step: aStep('Restart the VM', otherMac, NEW_BOOT), wrong: 'interface eth0 was' },
  'another uuid': {
    step: aStep('Restart the VM', facts({ uuid: 'u-2', bootid: 'b-2' }), NEW_BOOT),
    wrong: 'firmware uuid was "u-1" and is "u-2"',
  },
  'a lost secret': {
    step: aStep('Restart the VM', facts({ 'tpm.nv': 'none(rc=0000028b)', bootid: 'b-2' }), NEW_BOOT),
    wrong: 'TPM secret was "secret" and is "none"',
  },
  'a disk that disappeared': {
    step: aStep('Restart the VM', { ...rebooted, disks: [] }, NEW_BOOT),
    wrong: 'disk data was "at 0000:02:00.0" and is "-"',
  },
  'a boot that was not requested': { step: aStep('Move it', rebooted), wrong: 'boot id was "b-1" and is "b-2"' },
  'a restart that did not happen': {
    step: aStep('Restart the VM', FIRST, NEW_BOOT),
    wrong: 'boot id was "b-1" and is "b-1"',
  },
  'a machine type that did not change': {
    step: aStep('Change it', FIRST, { 'machine type': 'pc-q35-7.2' }),
    wrong: 'machine type was "pc-q35-6.2" and is "pc-q35-6.2"',
  },
  'a step that fails although the guest is as it was': {
    step: {
      ...aStep('Read the history', FIRST),
      run: async () => ({ report: FIRST, problem: 'an entry is missing' }),
    },
    wrong: 'an entry is missing',
  },
};
for (const [title, { step, wrong }] of Object.entries(cases)) {
  test(`the verdict after ${title}`, async () => {
    const { same, text } = await verdictOf(step);
    assert.equal(same, wrong === undefined);
    if (wrong === undefined) assert.match(text, /Verdict: after 2 steps it is the selfsame machine/);
    else {
      assert.match(text, /Verdict: it is NOT the selfsame machine/);
      assert.ok(text.includes(`${step.title}: ${wrong}`), text);
    }
  });
}

test('the tour fails if a request is not refused', async () => {
  const api = { patch: async () => {}, remove: async () => {} };
  const scene = { api, guest: {}, before: FIRST } as unknown as Scene;
  const steps = buildSteps({ first: 'pc-q35-6.2', other: 'pc-q35-7.2' }, newEdits());
  for (const title of ['Protect the VM and try to delete it', 'Try to remove the firmware uuid']) {
    const step = steps.find((one) => one.title === title);
    await assert.rejects(async () => step!.run(scene), /was not refused/);
  }
});

test('the examples match the objects of the tour', () => {
  const read = (name: string) =>
    parseAllDocuments(readFileSync(new URL(`../../../examples/${name}`, import.meta.url), 'utf8')).map(
      (document) => document.toJS() as { metadata: object; spec: Record<string, unknown> },
    );
  const wanted = [tourClaim(DISK_CLAIM), tourClaim(PLUGGED), tourVm('pc-q35-6.2')];
  assert.deepEqual(
    read('tour-vm.yaml').map(({ metadata, spec }) => ({ metadata, spec })),
    wanted,
  );
  const [snapshot] = read('tour-snapshot.yaml');
  const [restore] = read('tour-restore.yaml');
  const source = { apiGroup: 'kubevirt.io', kind: 'VirtualMachine', name: VM_NAME };
  assert.deepEqual([snapshot?.metadata, snapshot?.spec], [{ name: SNAPSHOT }, { source }]);
  assert.deepEqual(
    [restore?.metadata, restore?.spec],
    [{ name: RESTORE }, { target: source, virtualMachineSnapshotName: SNAPSHOT }],
  );
});
