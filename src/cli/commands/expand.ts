/** virtctl expand */
import { text } from 'node:stream/consumers';
import { SUBRESOURCES_GROUP } from '#api/names.ts';
import { defineCommand, type Terminal } from '#cli/command.ts';
import { CommandError, explainFailure, UsageError } from '#lib/command-line/command-error.ts';
import { textFlag } from '#lib/command-line/flag.ts';
import { readLocalFile } from '#cli/transfer/local-files.ts';
import { errorMessage } from '#lib/error-message.ts';
import { formatValue } from '#cli/output-format.ts';
import { verbPath } from '#cli/connection/verb-path.ts';
import { isRecord } from '#kube/meta.ts';
import { parseYaml } from '#kube/yaml.ts';

const MAX_FILE_BYTES = 3 * 1024 * 1024;

export const expand = defineCommand({
  name: 'expand',
  usage: '--vm VM | --file FILE',
  summary: 'Return the VirtualMachine object with expanded instancetype and preference.',
  details: 'Selfsame has no instance types and preferences, so the VirtualMachine is returned unchanged.',
  example: [
    "  # Expand a virtual machine called 'myvm':",
    '  virtctl expand --vm myvm',
    '',
    '  # Expand a virtual machine from a file, or from standard input:',
    '  virtctl expand --file myvm.yaml',
    '  virtctl create vm --name myvm | virtctl expand --file -',
    '',
    '  # Display it as JSON:',
    '  virtctl expand --vm myvm --output json',
  ].join('\n'),
  flags: {
    vm: textFlag(
      { name: 'vm', help: 'The virtual machine to expand; cannot be combined with --file.', completes: 'vm' },
      'string',
    ),
    file: textFlag(
      {
        name: 'file',
        short: 'f',
        help: 'A file with the virtual machine to expand, or - for standard input; cannot be combined with --vm.',
        completes: 'file',
      },
      'string',
    ),
    output: textFlag(
      {
        name: 'output',
        short: 'o',
        help: 'Output format: yaml or json; yaml by default.',
        completes: ['yaml', 'json'],
      },
      'string',
    ),
  },
  args: 0,
  completes: [],
  async run({ flags: { vm: name, file, output = 'yaml' }, connect, print, terminal }) {
    if (name !== undefined && file !== undefined) {
      throw new UsageError('--vm and --file cannot be combined');
    }
    if (name === undefined && file === undefined) {
      throw new UsageError('expected --vm or --file');
    }
    if (output !== 'yaml' && output !== 'json') {
      throw new UsageError(`unsupported output format ${JSON.stringify(output)}; expected yaml or json`);
    }
    const given = file === undefined ? undefined : await readVmFile(file, terminal);
    const api = await connect();
    const shown = name ?? nameOf(given);
    const root = `/apis/${SUBRESOURCES_GROUP}/v1/namespaces/${encodeURIComponent(api.namespace)}`;
    const expanding =
      name === undefined
        ? api.putForObject(`${root}/expand-vm-spec`, given)
        : api.get(verbPath('virtualmachines', api.namespace, name, 'expand-spec'));
    const what = `Cannot expand VM ${shown}: `;
    print(formatValue(await explainFailure(what, expanding), output));
  },
});

async function readVmFile(path: string, { stdin }: Terminal): Promise<unknown> {
  const content = path === '-' ? await text(stdin) : (await readLocalFile(path, MAX_FILE_BYTES)).toString('utf8');
  try {
    return parseYaml(content);
  } catch (cause) {
    throw new CommandError(`Cannot read ${path === '-' ? 'standard input' : path}: ${errorMessage(cause)}`, { cause });
  }
}

function nameOf(vm: unknown): string {
  const metadata = isRecord(vm) && isRecord(vm['metadata']) ? vm['metadata'] : {};
  return typeof metadata['name'] === 'string' ? metadata['name'] : '';
}
