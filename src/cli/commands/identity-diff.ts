/** virtctl identity diff */
import { identityDiff } from '#api/identity/identity-diff.ts';
import { configurationOf } from '#api/kubevirt/configuration.ts';
import { predictRecord } from '#api/identity/predict-record.ts';
import { defineCommand } from '#cli/parsing/command.ts';
import { switchFlag } from '#cli/parsing/flags.ts';
import { formatValue, outputFlag, parseOutputFormat } from '#cli/terminal/output-format.ts';
import { findInstance, findRecord, readConfiguration, readVm } from '#cli/connection/vm-objects.ts';
import type { Difference } from '#api/identity/identity-last-seen.ts';

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
  async run({ args: [name = ''], flags, connect, print, terminal }) {
    const format = parseOutputFormat(flags.output);
    const api = await connect();
    const vm = await readVm(api, name);
    const report = (line: string) => void terminal.stderr.write(`${line}\n`);
    const namesMachine = Boolean(vm.spec.template.spec?.domain.machine?.type);
    const configuration = namesMachine ? configurationOf(undefined) : await readConfiguration(api, report);
    const [record, vmi] = [(await findRecord(api, vm)) ?? predictRecord(vm), await findInstance(api, vm)];
    const differences = identityDiff({ vm, record, vmi, configuration });
    if (format !== undefined) print(formatValue(differences, format));
    else for (const difference of differences) print(renderDifference(difference));
    return flags.exitCode && differences.length > 0 ? DIFFERENT : 0;
  },
});

function renderDifference({ what, from, to, why }: Difference): string {
  return [what, `  - ${from}`, `  + ${to}`, `  # ${why}`].join('\n');
}
