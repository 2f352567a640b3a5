/** virtctl update machine-types supported */
import { checkMachineType } from '#api/validation/spec/machine.ts';
import { defineCommand } from '#cli/parsing/command.ts';
import { readFleet } from '#cli/machine-types/read-fleet.ts';
import { listNodeMetadata } from '#cli/machine-types/list-node-metadata.ts';
import { offeredTypes, supportedText, supportedTypes, usedType } from '#cli/machine-types/supported-types.ts';
import { formatValue, outputFlag, parseOutputFormat } from '#cli/terminal/output-format.ts';
import { readConfiguration } from '#cli/connection/vm-objects.ts';

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
  async run({ flags, namespace, connect, print, terminal }) {
    const format = parseOutputFormat(flags.output);
    const api = await connect();
    const report = (line: string) => void terminal.stderr.write(`${line}\n`);
    const configuration = await readConfiguration(api, report);
    const nodes = await listNodeMetadata(api, report);
    const { vms, vmis } = await readFleet(api, { namespace, report });
    const used = vms.map((vm) => usedType(vm, vmis.get(vm.metadata.uid), configuration.defaultMachineType));
    const isAllowed = (type: string) => checkMachineType(type, 'type', configuration).length === 0;
    const supported = supportedTypes(offeredTypes(nodes), used, isAllowed);
    print(format === undefined ? supportedText(supported) : formatValue(supported, format));
  },
});
