/** Shared by protect and unprotect: changes one VM by name, or all that match a selector. protection.ts defines the patch. */
import type { ApiConnection } from '#cli/api-connection.ts';
import type { CommandContext } from '#cli/command.ts';
import { dryRunFlag, dryRunQuery } from '#cli/dry-run.ts';
import { CommandError, switchFlag, textFlag, type FlagValues } from '#cli/flags.ts';
import { listAll } from '#cli/list-all.ts';
import { messageOf } from '#cli/message-of.ts';
import { summaryOf, targetOf, vmNameOf, type ProtectionChange, type VmName } from '#cli/protection.ts';
import { collectionPath, objectPath } from '#cli/verb-path.ts';
import { ApiError } from '#kube/api-error.ts';

export const targetFlags = {
  selector: textFlag(
    { name: 'selector', short: 'l', help: 'Selector (label query) to filter on, instead of a name: -l key1=value1' },
    'string',
  ),
  allNamespaces: switchFlag({
    name: 'all-namespaces',
    short: 'A',
    help: 'With --selector: select virtual machines in all namespaces.',
  }),
  dryRun: dryRunFlag,
};

/** How many requests run in parallel. */
const AT_ONCE = 8;

/** Changes one VM, or all selected VMs, and reports failures at the end. Throws CommandError or ApiError. */
export async function changeProtection(
  context: CommandContext<FlagValues<typeof targetFlags>>,
  change: ProtectionChange,
): Promise<void> {
  const { args, flags, namespace, connect, print, terminal } = context;
  const target = targetOf({ args, ...flags, namespace });
  const api = await connect();
  const query = dryRunQuery(flags.dryRun, print);
  if ('name' in target) {
    const { complaint } = await changeOne(api, change, { namespace: api.namespace, name: target.name }, query);
    if (complaint !== undefined) throw new CommandError(`Error ${change.verb}ing VM ${target.name}: ${complaint}`);
    print(`VM ${target.name} is ${change.state}`);
    return;
  }
  const { selector, everywhere } = target;
  const path = collectionPath('virtualmachines', everywhere ? undefined : api.namespace);
  const say = (line: string) => void terminal.stderr.write(`${line}\n`);
  const vms = await listAll(api, { path, labelSelector: selector }, vmNameOf, say);
  if (vms.length === 0) {
    print(`No VM matches the selector ${JSON.stringify(selector)}`);
    return;
  }
  const shown = (vm: VmName) => (everywhere ? `${vm.namespace}/${vm.name}` : vm.name);
  await changeAll(vms, change, { ask: (vm) => changeOne(api, change, vm, query), shown, print });
}

interface Outcome {
  /** Why the change failed; undefined on success. */
  readonly complaint: string | undefined;
  /** The server did not respond, so further requests are pointless. */
  readonly unreachable: boolean;
}

export interface ChangeAllOptions {
  ask(vm: VmName): Promise<Outcome>;
  shown(vm: VmName): string;
  print(line: string): void;
}

/** Prints a line for each changed VM, and a summary. Throws CommandError with the VMs that failed. */
export async function changeAll(
  vms: readonly VmName[],
  change: ProtectionChange,
  { ask, shown, print }: ChangeAllOptions,
): Promise<void> {
  const complaints: string[] = [];
  let [tried, unreachable] = [0, false];
  while (tried < vms.length && !unreachable) {
    const batch = vms.slice(tried, tried + AT_ONCE);
    const outcomes = await Promise.all(batch.map(ask));
    for (const [i, vm] of batch.entries()) {
      const { complaint } = outcomes[i]!;
      if (complaint === undefined) print(`VM ${shown(vm)} is ${change.state}`);
      else complaints.push(`  ${shown(vm)}: ${complaint}`);
    }
    tried += batch.length;
    unreachable = outcomes.some((outcome) => outcome.unreachable);
  }
  if (tried > complaints.length) print(summaryOf(tried - complaints.length, change));
  if (complaints.length === 0) return;
  const untried = vms.length - tried;
  throw new CommandError(
    [
      `Error ${change.verb}ing ${complaints.length} of ${vms.length} VMs:`,
      ...complaints,
      ...(untried === 0 ? [] : [`  ${untried} more were not attempted`]),
    ].join('\n'),
  );
}

async function changeOne(
  api: ApiConnection,
  { patch, complaint }: ProtectionChange,
  { namespace, name }: VmName,
  query: string,
): Promise<Outcome> {
  try {
    const vm = await api.patch(objectPath('virtualmachines', namespace, name) + query, patch);
    return { complaint: complaint(vm), unreachable: false };
  } catch (error) {
    return { complaint: messageOf(error), unreachable: !(error instanceof ApiError) };
  }
}
