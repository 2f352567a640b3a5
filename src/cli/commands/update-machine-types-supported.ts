/** virtctl update machine-types supported */
import { checkMachineType } from '#api/validation/machine.ts';
import { defineCommand } from '#cli/command.ts';
import { readFleet } from '#cli/machine-types/read-fleet.ts';
import { readNodes } from '#cli/machine-types/read-nodes.ts';
import { offeredTypes, supportedText, supportedTypes, usedType } from '#cli/machine-types/supported-types.ts';
import { formatValue, outputFlag, outputFormat } from '#cli/output-format.ts';
import { readConfiguration } from '#cli/vm-objects.ts';

export const updateMachineTypesSupported = defineCommand({
  name: 'supported',
  usage: '',
  summary: 'List the machine types that nodes offer, and the virtual machines whose type no node offers.',
  details:
    'A running virtual machine counts for the type that it runs on, another one for the type that its next start would\n' +
    'take. ALLOWED are those that the KubeVirt object lets virtual machines have. --namespace counts those of one namespace\n' +
    'only.',
  example: '  # Which machine types there are, and who uses them:\n  virtctl update machine-types supported',
  flags: { output: outputFlag },
  args: 0,
  async run({ flags, namespace, connect, print, terminal }) {
    const format = outputFormat(flags.output);
    const api = await connect();
    const say = (line: string) => void terminal.stderr.write(`${line}\n`);
    const configuration = await readConfiguration(api, say);
    const nodes = await readNodes(api, say);
    const { vms, vmis } = await readFleet(api, { namespace, say });
    const used = vms.map((vm) => usedType(vm, vmis.get(vm.metadata.uid), configuration.defaultMachineType));
    const isAllowed = (type: string) => checkMachineType(type, 'type', configuration).length === 0;
    const supported = supportedTypes(offeredTypes(nodes), used, isAllowed);
    print(format === undefined ? supportedText(supported) : formatValue(supported, format));
  },
});
