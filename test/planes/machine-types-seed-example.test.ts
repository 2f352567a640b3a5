/**
 * The example of the proposal, word by word: simulated nodes offer what `qemu-kvm -machine ?` of CentOS Stream 9 lists,
 * and the two VMs of the example go through the transition as described.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parse } from 'yaml';
import { parseArgs } from '#lib/command-line/parse-args.ts';
import { textFlag } from '#lib/command-line/flag.ts';
import { offeredTypes, supportedText, supportedTypes } from '#cli/machine-types/supported-types.ts';
import { selectionFlags, transitionOptions } from '#cli/machine-types/transition-flags.ts';
import type { Loose } from '#test/support/test-api.ts';
import { TransitionScene } from '#test/support/transition-scene.ts';
import { aVm, startVmPlane, type VmPlane } from '#test/support/vm-plane.ts';

const SUPPORTED_MACHINES = `
pc                   RHEL 7.6.0 PC (i440FX + PIIX, 1996) (alias of pc-i440fx-rhel7.6.0)
pc-i440fx-rhel7.6.0  RHEL 7.6.0 PC (i440FX + PIIX, 1996) (default) (deprecated)
q35                  RHEL-9.2.0 PC (Q35 + ICH9, 2009) (alias of pc-q35-rhel9.2.0)
pc-q35-rhel9.2.0     RHEL-9.2.0 PC (Q35 + ICH9, 2009)
pc-q35-rhel9.0.0     RHEL-9.0.0 PC (Q35 + ICH9, 2009)
pc-q35-rhel8.6.0     RHEL-8.6.0 PC (Q35 + ICH9, 2009) (deprecated)
pc-q35-rhel8.5.0     RHEL-8.5.0 PC (Q35 + ICH9, 2009) (deprecated)
pc-q35-rhel8.4.0     RHEL-8.4.0 PC (Q35 + ICH9, 2009) (deprecated)
pc-q35-rhel8.3.0     RHEL-8.3.0 PC (Q35 + ICH9, 2009) (deprecated)
pc-q35-rhel8.2.0     RHEL-8.2.0 PC (Q35 + ICH9, 2009) (deprecated)
pc-q35-rhel8.1.0     RHEL-8.1.0 PC (Q35 + ICH9, 2009) (deprecated)
pc-q35-rhel8.0.0     RHEL-8.0.0 PC (Q35 + ICH9, 2009) (deprecated)
pc-q35-rhel7.6.0     RHEL-7.6.0 PC (Q35 + ICH9, 2009) (deprecated)
`;

/** Parses QEMU's list to rows `NAME ALIAS DEPRECATED`, as `virtctl update machine-types supported` prints them. */
function parseQemuList(): string[] {
  const lines = SUPPORTED_MACHINES.trim().split('\n');
  const aliases = new Map(
    lines.flatMap((line) => {
      const [, alias, name] = /^(\S+) .*\(alias of (\S+)\)$/.exec(line) ?? [];
      return alias === undefined ? [] : [[name, alias] as const];
    }),
  );
  return lines
    .filter((line) => !line.includes('(alias of '))
    .map((line) => {
      const [name = ''] = line.split(' ');
      return `${name} ${aliases.get(name) ?? '-'} ${line.endsWith('(deprecated)') ? 'yes' : 'no'}`;
    });
}

test('supported lists the types of the proposal, with their aliases and whether they are deprecated', async (t) => {
  const plane = await startVmPlane(t);
  const offered = offeredTypes(await plane.list('Node'));
  const text = supportedText(supportedTypes(offered, [], () => true));
  const rows = text
    .split('\n')
    .filter((line) => line.includes('rhel'))
    .map((line) => line.split(/\s+/).slice(0, 3).join(' '));
  assert.deepEqual(rows.toSorted(), parseQemuList().toSorted());
  const aliases = offered.flatMap((type) => type.aliases.map((alias) => `${alias} = ${type.name}`));
  assert.deepEqual(
    aliases.toSorted(),
    ['pc = pc-i440fx-rhel7.6.0', 'q35 = pc-q35-rhel9.2.0'],
    'each alias has one meaning',
  );
});

/** Returns the manifest of the proposal, completed with the fields that it omits. */
function aVmWith(name: string, shown: string): Loose {
  const { spec } = parse(shown);
  const vm = aVm(name);
  const { running, template } = spec;
  vm.spec = { running, ...vm.spec };
  vm.spec.template.spec.domain.machine = template.spec.domain.machine;
  return vm;
}

/** Runs the command as typed: `virtctl update machine-types --which-matches-glob *rhel-8.*`. */
function update(plane: VmPlane): Promise<TransitionScene> {
  const flags = { ...selectionFlags, namespace: textFlag({ name: 'namespace', help: '' }, 'string') };
  const parsed = parseArgs(flags, ['--which-matches-glob', '*rhel-8.*']);
  return TransitionScene.create(plane, transitionOptions({ ...parsed, namespace: parsed.flags.namespace }));
}

/** Returns the fields of a VM and its instance that the proposal shows. */
async function summarize(plane: VmPlane, name: string): Promise<Loose> {
  const vm = await plane.get('VirtualMachine', name);
  const vmi = await plane.find('VirtualMachineInstance', name);
  return {
    running: vm.spec.running,
    type: vm.spec.template.spec.domain.machine?.type ?? null,
    machineTypeRestartRequired: vm.status.machineTypeRestartRequired,
    vmi: vmi && { spec: vmi.spec.domain.machine.type, status: vmi.status.machine.type },
  };
}

test('a VM that does not run', async (t) => {
  const plane = await startVmPlane(t);
  const manifest = `
    spec:
      running: false
      template:
        spec:
          domain:
            machine:
              type: pc-q35-rhel8.2.0
  `;
  await plane.apply(aVmWith('cold', manifest));
  assert.equal(await (await update(plane)).run(), 'done');
  await plane.settle();
  const cleared = { running: false, type: null, machineTypeRestartRequired: undefined, vmi: undefined };
  assert.deepEqual(await summarize(plane, 'cold'), cleared, 'the machine type in the VM spec is now empty');
  await plane.runVerb('start', 'cold');
  // The default machine type of the KubeVirt object.
  const { type, vmi } = await summarize(plane, 'cold');
  assert.deepEqual([type, vmi], ['q35', { spec: 'q35', status: 'pc-q35-rhel9.2.0' }]);
});

test('a VM with the alias q35 that was started when a RHEL-8 machine type was the latest', async (t) => {
  const plane = await startVmPlane(t);
  const manifest = `
    spec:
      running: true
      template:
        spec:
          domain:
            machine:
              type: q35
  `;
  await plane.apply(aVmWith('warm', manifest));
  Object.assign(plane.guest('warm').record, { machine: 'pc-q35-rhel8.2.0' });
  for (const { name } of plane.nodes) await plane.restartAgent(name);
  const old = { spec: 'q35', status: 'pc-q35-rhel8.2.0' };
  assert.deepEqual((await summarize(plane, 'warm')).vmi, old);

  const scene = await update(plane);
  const running = scene.start();
  await scene.advance(4);
  const marked = { running: true, type: 'q35', machineTypeRestartRequired: true, vmi: old };
  assert.deepEqual(await summarize(plane, 'warm'), marked);

  await plane.runVerb('stop', 'warm');
  const stopped = { running: false, type: 'q35', machineTypeRestartRequired: false, vmi: undefined };
  assert.deepEqual(await summarize(plane, 'warm'), stopped);
  assert.equal(await scene.awaitEnd(running), 'done');

  await plane.runVerb('start', 'warm');
  const { vmi } = await summarize(plane, 'warm');
  assert.deepEqual(vmi, { spec: 'q35', status: 'pc-q35-rhel9.2.0' });
});
