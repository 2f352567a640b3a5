/** virtctl unprotect VM --disk CLAIM: ends the protection of a disk that was detached from a protected VM. */
import { RELEASE_DISK_VERB } from '#api/verbs/verb.ts';
import type { CommandContext } from '#cli/command.ts';
import type { targetFlags } from '#cli/commands/protection/change-protection.ts';
import { verbPath } from '#cli/connection/verb-path.ts';
import { dryRunOption } from '#cli/dry-run.ts';
import { explainFailure, UsageError } from '#lib/command-line/command-error.ts';
import type { FlagValues } from '#lib/command-line/flag.ts';

/** Throws CommandError or UsageError. */
export async function releaseDisk(
  { args, flags, connect, print }: CommandContext<FlagValues<typeof targetFlags>>,
  claim: string,
): Promise<void> {
  const [vm] = args;
  const { selector, allNamespaces, dryRun } = flags;
  if (vm === undefined || selector !== undefined || allNamespaces)
    throw new UsageError('Cannot use --disk without the name of one VM: virtctl unprotect VM --disk CLAIM');
  const api = await connect();
  const body = { claimName: claim, ...dryRunOption(dryRun, print) };
  const path = verbPath('virtualmachines', api.namespace, vm, RELEASE_DISK_VERB);
  await explainFailure(`Cannot release PersistentVolumeClaim ${claim}: `, api.put(path, body));
  print(`PersistentVolumeClaim ${claim} is no longer protected by VM ${vm}`);
}
