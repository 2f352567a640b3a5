/** virtctl identity diff */
import { identityDiff } from '#api/identity/identity-diff.ts';
import { configurationOf } from '#api/kubevirt/configuration.ts';
import { predictRecord } from '#api/identity/predict-record.ts';
import { defineCommand } from '#cli/command.ts';
import { differenceText } from '#cli/difference-text.ts';
import { switchFlag } from '#lib/command-line/flag.ts';
import { formatValue, outputFlag } from '#cli/output-format.ts';
import { findGuestNetwork, findInstance, findRecord, readConfiguration, readVm } from '#cli/connection/vm-objects.ts';

/** The same exit code as diff. */
const DIFFERENT = 1;

export const identityDiffCommand = defineCommand({
  name: 'diff',
  usage: 'VM',
  summary: 'Show what will change for the guest of a virtual machine at its next start, and why.',
  details:
    'Prints nothing if nothing will change. CPUs, memory and firmware can be compared only while an instance exists. The\n' +
    'node decides which machine type an alias such as q35 resolves to.',
  example: [
    "  # Show what will change for the guest of 'db':",
    '  virtctl identity diff db',
    '',
    '  # In a script: fail if something will change',
    '  virtctl identity diff db --exit-code',
  ].join('\n'),
  flags: {
    output: outputFlag,
    exitCode: switchFlag({ name: 'exit-code', help: 'Exit with 1 if there are differences, and with 0 otherwise.' }),
  },
  args: 1,
  async run({ args: [name = ''], flags, connect, print, report, paint, terminal }) {
    const format = flags.output;
    const api = await connect();
    const vm = await readVm(api, name);
    const namesMachine = Boolean(vm.spec.template.spec?.domain.machine?.type);
    const configuration = namesMachine ? configurationOf(undefined) : await readConfiguration(api, report);
    const [record, vmi] = [(await findRecord(api, vm)) ?? predictRecord(vm), await findInstance(api, vm)];
    const network = await findGuestNetwork(api);
    const differences = identityDiff({ vm, record, vmi, configuration, network });
    if (format !== undefined) print(formatValue(differences, format));
    else for (const one of differences) terminal.stdout.write(`${differenceText(one, paint)}\n`);
    return flags.exitCode && differences.length > 0 ? DIFFERENT : 0;
  },
});
