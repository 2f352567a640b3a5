/** virtctl update machine-types and its subcommands. */
import { TRANSITION_JOBS, type TransitionJob } from '#api/machine-types/kinds.ts';
import { canonicalTypes } from '#api/machine-types/node-types.ts';
import { SYSTEM_NAMESPACE } from '#api/names.ts';
import { defineCommand } from '#cli/parsing/command.ts';
import { updateMachineTypesDelete } from '#cli/commands/update-machine-types-delete.ts';
import { updateMachineTypesList } from '#cli/commands/update-machine-types-list.ts';
import { updateMachineTypesSupported } from '#cli/commands/update-machine-types-supported.ts';
import { CommandError, switchFlag } from '#cli/parsing/flags.ts';
import { checkOptions } from '#cli/machine-types/check-options.ts';
import { previewVm, previewText } from '#cli/machine-types/plan-preview.ts';
import { readFleet, readRecords } from '#cli/machine-types/read-fleet.ts';
import { findIdleFlags, selectionFlags, transitionOptions } from '#cli/machine-types/transition-flags.ts';
import { createdText, buildTransitionJob } from '#cli/machine-types/transition-job.ts';
import { waitForTransition } from '#cli/machine-types/wait-for-transition.ts';
import { errorMessage } from '#lib/error-message.ts';
import { formatValue, outputFlag, parseOutputFormat } from '#cli/terminal/output-format.ts';
import { readConfiguration } from '#cli/connection/vm-objects.ts';
import { collectionPath } from '#client/resource-path.ts';
import type { Stored } from '#kube/meta.ts';

const updateCommand = defineCommand({
  name: 'machine-types',
  usage: '[GLOB]',
  summary: 'Move virtual machines away from machine types that match a glob.',
  details: [
    'A job clears the machine type of each virtual machine, or sets --target-machine-type. A stopped virtual machine gets',
    'the new type at its next start. A running one is marked (status.machineTypeRestartRequired), and the job waits until it',
    'is stopped or restarted; with --restart-now the job restarts it. An alias such as q35 is resolved to the type that the',
    'guest runs with. A glob is matched against both pc-q35-rhel8.2.0 and pc-q35-rhel-8.2.0. Without --namespace, all',
    'namespaces are covered.',
    '',
    'Available Commands:',
    ...[updateMachineTypesDelete, updateMachineTypesList, updateMachineTypesSupported].map(
      ({ name, summary }) => `  ${name.padEnd(9)}   ${summary}`,
    ),
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
    wait: switchFlag({ name: 'wait', help: 'Wait until the job ends and show its progress.' }),
    output: { ...outputFlag, help: 'With --dry-run: output format, json or yaml; a table by default.' },
  },
  // More than one glob is refused by transitionOptions, which explains the cause.
  args: [0, Infinity],
  async run({ args, flags, namespace, connect, print, terminal, clock }) {
    const options = transitionOptions({ args, flags, namespace });
    const format = parseOutputFormat(flags.output);
    if (flags.wait && flags.dryRun) throw new CommandError('--wait cannot be combined with --dry-run');
    if (format !== undefined && !flags.dryRun) throw new CommandError('--output requires --dry-run');
    const api = await connect();
    const report = (line: string) => void terminal.stderr.write(`${line}\n`);
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
      print(format === undefined ? previewText(rows, options.glob) : formatValue(rows, format));
      return;
    }
    let job: Stored<TransitionJob>;
    try {
      job = (await api.post(
        collectionPath(TRANSITION_JOBS, SYSTEM_NAMESPACE),
        buildTransitionJob(options),
      )) as Stored<TransitionJob>;
    } catch (cause) {
      throw new CommandError(`Error creating job: ${errorMessage(cause)}`, { cause });
    }
    print(createdText(job.metadata.name));
    const { maxFailures } = options;
    if (flags.wait)
      await waitForTransition(api, job.metadata.name, { maxFailures, clock, stderr: terminal.stderr, print });
  },
});

/** A command with subcommands. Words that name no subcommand are its own arguments. */
export const updateMachineTypes = {
  ...updateCommand,
  commands: [updateMachineTypesDelete, updateMachineTypesList, updateMachineTypesSupported],
};
