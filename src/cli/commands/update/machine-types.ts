/** virtctl update machine-types and its subcommands. */
import { TRANSITION_JOBS, type TransitionJob } from '#api/machine-types/kinds.ts';
import { canonicalTypes } from '#api/machine-types/node-types.ts';
import { SYSTEM_NAMESPACE } from '#api/names.ts';
import { defineCommand, type VirtctlGroup } from '#cli/command.ts';
import { UsageError, explainFailure } from '#lib/command-line/command-error.ts';
import { switchFlag } from '#lib/command-line/flag.ts';
import { checkOptions } from '#cli/machine-types/check-options.ts';
import { previewVm, previewText } from '#cli/machine-types/plan-preview.ts';
import { readFleet, readRecords } from '#cli/machine-types/read-fleet.ts';
import { findIdleFlags, selectionFlags, transitionOptions } from '#cli/machine-types/transition-flags.ts';
import { createdText, buildTransitionJob } from '#cli/machine-types/transition-job.ts';
import { FLEET_TIMEOUT, waitFlags, waitLimitMs } from '#cli/wait/wait-flags.ts';
import { waitForTransition } from '#cli/machine-types/wait-for-transition.ts';
import { formatValue, outputFlag } from '#cli/output-format.ts';
import { readConfiguration } from '#cli/connection/vm-objects.ts';
import {
  updateMachineTypesDelete,
  updateMachineTypesList,
  updateMachineTypesSupported,
} from '#cli/commands/update/transitions.ts';
import { collectionPath } from '#client/resource-path.ts';
import type { Stored } from '#kube/meta.ts';

export const updateMachineTypes = defineCommand({
  name: 'machine-types',
  usage: '[GLOB]',
  summary: 'Move virtual machines away from machine types that match a glob.',
  details: [
    'A job clears the machine type of each virtual machine, or sets --target-machine-type. A stopped virtual machine gets',
    'the new type at its next start. A running one is marked (status.machineTypeRestartRequired), and the job waits until it',
    'is stopped or restarted; with --restart-now the job restarts it. An alias such as q35 is resolved to the type that the',
    'guest runs with. A glob is matched against both pc-q35-rhel8.2.0 and pc-q35-rhel-8.2.0. Without --namespace, all',
    'namespaces are covered.',
  ].join('\n'),
  example: [
    '  # Show the plan and what the guests would notice:',
    "  virtctl update machine-types '*rhel8.*' --dry-run",
    '',
    '  # Change the virtual machines of one namespace, without restarting them:',
    "  virtctl update machine-types '*rhel8.*' --namespace shop",
    '',
    '  # Restart running virtual machines, five at a time, and show progress:',
    "  virtctl update machine-types '*rhel8.*' --restart-now --max-restarts 5 --wait",
  ].join('\n'),
  flags: {
    ...selectionFlags,
    dryRun: switchFlag({
      name: 'dry-run',
      help: 'Print the plan and what guests would notice, without changing anything.',
    }),
    ...waitFlags('the job ends', FLEET_TIMEOUT),
    output: { ...outputFlag, help: 'With --dry-run: output format, json or yaml; a table by default.' },
  },
  // More than one glob is refused by transitionOptions, which explains the cause.
  args: [0, Infinity],
  async run({ args, flags, namespace, connect, print, report, paint, status, terminal }) {
    const options = transitionOptions({ args, flags, namespace });
    const format = flags.output;
    if (flags.wait && flags.dryRun) throw new UsageError('--wait cannot be combined with --dry-run');
    if (format !== undefined && !flags.dryRun) throw new UsageError('--output requires --dry-run');
    const limitMs = waitLimitMs(flags, FLEET_TIMEOUT);
    const api = await connect();
    const configuration = await readConfiguration(api, report);
    const nodes = await checkOptions(api, options, configuration, report);
    for (const line of findIdleFlags(flags)) report(`Warning: ${line}`);
    if (flags.dryRun) {
      const context = { configuration, canonical: canonicalTypes(nodes) };
      const query = { namespace, labelSelector: options.labelSelector, report };
      const { vms, vmis } = await readFleet(api, query);
      const records = await readRecords(api, vms, query);
      const rows = vms.flatMap((vm) => {
        const { uid } = vm.metadata;
        return previewVm({ vm, vmi: vmis.get(uid), record: records.get(uid) }, options, context) ?? [];
      });
      const text = format === undefined ? previewText(rows, options.glob, paint) : formatValue(rows, format);
      terminal.stdout.write(`${text}\n`);
      return;
    }
    const creating = api.post(collectionPath(TRANSITION_JOBS, SYSTEM_NAMESPACE), buildTransitionJob(options));
    const job = (await explainFailure('Cannot create the job: ', creating)) as Stored<TransitionJob>;
    print(createdText(job.metadata.name));
    const { maxFailures } = options;
    if (limitMs === undefined) return;
    await waitForTransition(api, job.metadata.name, { maxFailures, limitMs, status, print });
  },
});

export const update: VirtctlGroup = {
  name: 'update',
  summary: 'Change many virtual machines at once.',
  commands: [
    // Words that name no subcommand are arguments of the command itself.
    {
      ...updateMachineTypes,
      commands: [updateMachineTypesDelete, updateMachineTypesList, updateMachineTypesSupported],
    },
  ],
};
