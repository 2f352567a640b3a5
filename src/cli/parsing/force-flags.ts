/** The flags `--force` and `--grace-period` of stop and restart, which must be used together. */
import { CommandError, integerFlag, switchFlag } from '#cli/parsing/flags.ts';

export const forceFlags = {
  force: switchFlag({
    name: 'force',
    help: '--force=false: Only used when grace-period=0. If true, immediately remove VMI pod from API and bypass graceful deletion. Note that immediate deletion of some resources may result in inconsistency or data loss.',
  }),
  gracePeriod: integerFlag(
    {
      name: 'grace-period',
      help: '--grace-period=-1: Period of time in seconds given to the VMI to terminate gracefully. Can only be set to 0 when --force is true (force deletion). Currently only setting 0 is supported.',
    },
    undefined,
  ),
};

/** Returns the requested grace period; undefined for the one of the VM. Throws CommandError. */
export function forcedGrace(flags: { force: boolean; gracePeriod: number | undefined }): number | undefined {
  if ((flags.gracePeriod !== undefined) !== flags.force) {
    throw new CommandError('Must both use --force=true and set --grace-period.');
  }
  return flags.gracePeriod;
}
