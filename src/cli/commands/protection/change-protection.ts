/** Shared by protect and unprotect: changes one VM by name, or all that match a selector. protection.ts defines the patch. */
import type { ApiConnection } from '#cli/connection/api-connection.ts';
import type { CommandContext } from '#cli/command.ts';
import { dryRunFlag, dryRunQuery } from '#cli/dry-run.ts';
import { CommandError } from '#lib/command-line/command-error.ts';
import { switchFlag, textFlag, type FlagValues } from '#lib/command-line/flag.ts';
import { listCollection } from '#cli/connection/list-collection.ts';
import { errorMessage } from '#lib/error-message.ts';
import {
  protectionSummary,
  parseProtectionTarget,
  vmKeyOf,
  type ProtectionChange,
  type VmKey,
} from '#cli/commands/protection/protection.ts';
import { vmCollectionPath, vmPath } from '#cli/connection/verb-path.ts';
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

/** The number of parallel requests. */
const CONCURRENCY = 8;

/** Changes one VM, or all selected VMs, and reports failures at the end. Throws CommandError or ApiError. */
export async function changeProtection(
  context: CommandContext<FlagValues<typeof targetFlags>>,
  change: ProtectionChange,
): Promise<void> {
  const { args, flags, namespace, connect, print, report } = context;
  const target = parseProtectionTarget({ args, ...flags, namespace });
  const api = await connect();
  const query = dryRunQuery(flags.dryRun, print);
  if ('name' in target) {
    const { error, cause } = await changeVm(api, change, { namespace: api.namespace, name: target.name }, query);
    if (error !== undefined) throw new CommandError(`Cannot ${change.verb} VM ${target.name}: ${error}`, { cause });
    print(`VM ${target.name} is ${change.state}`);
    return;
  }
  const { selector, allNamespaces } = target;
  const path = vmCollectionPath('virtualmachines', allNamespaces ? undefined : api.namespace);
  const vms = await listCollection(api, { path, labelSelector: selector }, vmKeyOf, report);
  if (vms.length === 0) {
    print(`No VM matches the selector ${JSON.stringify(selector)}`);
    return;
  }
  const displayName = (vm: VmKey) => (allNamespaces ? `${vm.namespace}/${vm.name}` : vm.name);
  await changeAll(vms, change, { changeVm: (vm) => changeVm(api, change, vm, query), displayName, print });
}

interface ChangeOutcome {
  /** Why the change failed; undefined on success. */
  readonly error: string | undefined;
  readonly cause?: unknown;
  /** The server did not respond, so further requests are pointless. */
  readonly unreachable: boolean;
}

interface ChangeAllOptions {
  changeVm(vm: VmKey): Promise<ChangeOutcome>;
  displayName(vm: VmKey): string;
  print(line: string): void;
}

/** Prints a line for each changed VM, and a summary. Throws CommandError with the VMs that failed. */
export async function changeAll(
  vms: readonly VmKey[],
  change: ProtectionChange,
  { changeVm, displayName, print }: ChangeAllOptions,
): Promise<void> {
  const errors: string[] = [];
  let [tried, unreachable] = [0, false];
  while (tried < vms.length && !unreachable) {
    const batch = vms.slice(tried, tried + CONCURRENCY);
    const outcomes = await Promise.all(batch.map(changeVm));
    for (const [i, vm] of batch.entries()) {
      const { error } = outcomes[i]!;
      if (error === undefined) print(`VM ${displayName(vm)} is ${change.state}`);
      else errors.push(`  ${displayName(vm)}: ${error}`);
    }
    tried += batch.length;
    unreachable = outcomes.some((outcome) => outcome.unreachable);
  }
  if (tried > errors.length) print(protectionSummary(tried - errors.length, change));
  if (errors.length === 0) return;
  const untried = vms.length - tried;
  throw new CommandError(
    [
      `Cannot ${change.verb} ${errors.length} of ${vms.length} VMs:`,
      ...errors,
      ...(untried === 0 ? [] : [`  ${untried} more were not attempted`]),
    ].join('\n'),
  );
}

async function changeVm(
  api: ApiConnection,
  { patch, findFailure }: ProtectionChange,
  { namespace, name }: VmKey,
  query: string,
): Promise<ChangeOutcome> {
  try {
    const vm = await api.patch(vmPath('virtualmachines', namespace, name) + query, patch);
    return { error: findFailure(vm), unreachable: false };
  } catch (error) {
    return { error: errorMessage(error), cause: error, unreachable: !(error instanceof ApiError) };
  }
}
