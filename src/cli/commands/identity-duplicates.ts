/** virtctl identity duplicates */
import type { ApiConnection } from '#cli/api-connection.ts';
import { defineCommand } from '#cli/command.ts';
import { duplicatesAsJson, duplicatesOf, duplicatesTable, holderOf, type Holder } from '#cli/duplicate-uuids.ts';
import { CommandError, textFlag } from '#cli/flags.ts';
import { listAll } from '#cli/list-all.ts';
import { collectionPath } from '#cli/verb-path.ts';
import { ApiError } from '#kube/api-error.ts';

const HINT =
  'Duplicates are looked for in all namespaces: this needs the permission to list virtualmachines.kubevirt.io there.';

export const identityDuplicates = defineCommand({
  name: 'duplicates',
  usage: '',
  summary: 'List the virtual machines that share a firmware uuid.',
  details:
    'All namespaces are looked at. With --namespace, only what virtual machines of that namespace share is listed,\n' +
    'whichever namespace the others are in. Virtual machines that are being deleted do not count.',
  example: [
    '  # List all virtual machines that share a firmware uuid with another one:',
    '  virtctl identity duplicates',
    '',
    "  # Those of the namespace 'team-a', and whom they share it with:",
    '  virtctl identity duplicates -n team-a',
  ].join('\n'),
  flags: {
    output: textFlag({ name: 'output', short: 'o', help: 'Output format: json, or a table without it.' }, 'string'),
  },
  args: 0,
  async run({ flags: { output }, connect, namespace, print, terminal }) {
    if (output !== undefined && output !== 'json') {
      throw new CommandError(`unable to match a printer suitable for the output format "${output}", expected json`);
    }
    const say = (line: string) => void terminal.stderr.write(`${line}\n`);
    const duplicates = duplicatesOf(await holders(await connect(), say), namespace);
    if (output === 'json') print(duplicatesAsJson(duplicates));
    else if (duplicates.length > 0) print(duplicatesTable(duplicates));
    else if (namespace === undefined) print('No two VirtualMachines have the same firmware uuid.');
    else print(`No VirtualMachine of namespace ${namespace} has the firmware uuid of another one.`);
  },
});

async function holders(api: ApiConnection, say: (line: string) => void): Promise<Holder[]> {
  try {
    return await listAll(api, { path: collectionPath('virtualmachines') }, holderOf, say);
  } catch (error) {
    if (!(error instanceof ApiError) || error.code !== 403) throw error;
    throw new CommandError(`${error.message}\n${HINT}`, { cause: error });
  }
}
