/** virtctl update machine-types list, delete and supported */
import { checkMachineType } from '#api/validation/spec/machine.ts';
import { deletionText } from '#cli/machine-types/deletion-text.ts';
import { removeTransition, resetMarks, stopJob } from '#cli/machine-types/delete-transition.ts';
import { listNodeMetadata, readFleet } from '#cli/machine-types/read-fleet.ts';
import { offeredTypes, supportedText, supportedTypes, usedType } from '#cli/machine-types/supported-types.ts';
import { readConfiguration } from '#cli/connection/vm-objects.ts';
import { defineCommand } from '#cli/command.ts';
import {
  trackEntries,
  readTransitionJob,
  listTransitionJobs,
  readTransition,
  type Transition,
} from '#cli/machine-types/read-transitions.ts';
import { transitionsAsValue, transitionsText } from '#cli/machine-types/transition-table.ts';
import { formatValue, outputFlag } from '#cli/output-format.ts';

export const updateMachineTypesList = defineCommand({
  name: 'list',
  usage: '[JOB]',
  summary: 'List the jobs that update machine types, and the state of every virtual machine in them.',
  details: [
    'States: pending (not changed yet), updated (the spec is changed, the guest still runs with the old type), restart',
    'required (and marked in the status of the virtual machine), restarting, done, skipped, failed. REASON explains the',
    'state.',
  ].join('\n'),
  example: [
    '  # List all jobs:',
    '  virtctl update machine-types list',
    '',
    '  # Print one job as JSON:',
    '  virtctl update machine-types list convert-machine-type-x7k2p -o json',
  ].join('\n'),
  flags: { output: outputFlag },
  args: [0, 1],
  async run({ args: [name], flags, connect, print, report, clock }) {
    const format = flags.output;
    const api = await connect();
    const transitions: Transition[] = [];
    for (const job of name === undefined
      ? await listTransitionJobs(api, report)
      : [await readTransitionJob(api, name)]) {
      transitions.push(await readTransition(api, job, report));
    }
    const entries = await trackEntries(api, transitions, report);
    const listed = transitions.map((transition, i) => ({ transition, entries: entries[i] ?? [] }));
    print(
      format === undefined ? transitionsText(listed, clock.now()) : formatValue(transitionsAsValue(listed), format),
    );
  },
});

export const updateMachineTypesDelete = defineCommand({
  name: 'delete',
  usage: '(JOB)',
  summary: 'Stop a job that updates machine types, report what it has done, and delete it.',
  details: [
    'Completed changes stay: a virtual machine whose type was changed gets the new type at its next start. The status',
    'machineTypeRestartRequired is cleared on virtual machines that were not restarted, since no job tracks it any more.',
  ].join('\n'),
  example:
    '  # Stop and delete a job, even if it is running:\n  virtctl update machine-types delete convert-machine-type-x7k2p',
  flags: {},
  args: 1,
  async run({ args: [name = ''], connect, print, report, clock }) {
    const api = await connect();
    const options = { clock, report };
    const job = await readTransitionJob(api, name);
    await stopJob(api, job, options);
    const transition = await readTransition(api, job, report);
    const [entries = []] = await trackEntries(api, [transition], report);
    const reset = await resetMarks(api, transition, entries, options);
    print(deletionText(transition, entries, reset));
    const isGone = await removeTransition(api, transition, options);
    print(`Job ${name} ${isGone ? 'was deleted' : 'is being deleted'}.`);
  },
});

export const updateMachineTypesSupported = defineCommand({
  name: 'supported',
  usage: '',
  summary: 'List the machine types that nodes offer, and the virtual machines whose type no node offers.',
  details:
    'A running virtual machine is counted under the type it runs with, a stopped one under the type of its next start.\n' +
    'ALLOWED shows whether the KubeVirt object permits the type. With --namespace, counts only the virtual machines of that\n' +
    'namespace.',
  example:
    '  # List the machine types and the number of virtual machines that use them:\n  virtctl update machine-types supported',
  flags: { output: outputFlag },
  args: 0,
  async run({ flags, namespace, connect, print, report }) {
    const format = flags.output;
    const api = await connect();
    const configuration = await readConfiguration(api, report);
    const nodes = await listNodeMetadata(api, report);
    const { vms, vmis } = await readFleet(api, { namespace, report });
    const used = vms.map((vm) => usedType(vm, vmis.get(vm.metadata.uid), configuration.defaultMachineType));
    const isAllowed = (type: string) => checkMachineType(type, 'type', configuration).length === 0;
    const supported = supportedTypes(offeredTypes(nodes), used, isAllowed);
    print(format === undefined ? supportedText(supported) : formatValue(supported, format));
  },
});
