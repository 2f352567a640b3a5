/** The flags --wait and --timeout of commands that can wait until their request has taken effect. */
import { parseGoDuration } from '#kube/go/go-duration.ts';
import { UsageError } from '#lib/command-line/command-error.ts';
import { checkedFlag, switchFlag, type FlagValues } from '#lib/command-line/flag.ts';

/** The limit for what a guest does: boot, shut down, release a disk. */
export const GUEST_TIMEOUT = '5m';
/** The limit for copies of disks and for migrations. */
export const COPY_TIMEOUT = '1h';
/** The limit for changes of a whole fleet. */
export const FLEET_TIMEOUT = '24h';

/** Creates the flags. `goal` completes "Wait until". */
export function waitFlags(goal: string, defaultTimeout: string) {
  return {
    wait: switchFlag({ name: 'wait', help: `Wait until ${goal}, and show the state meanwhile.` }),
    timeoutMs: checkedFlag<number, undefined>({
      name: 'timeout',
      value: 'duration',
      help: 'The longest time to wait with --wait, such as 90s or 1h30m.',
      fallback: undefined,
      defaultText: defaultTimeout,
      mustBe: 'a duration greater than 0, such as 90s, 5m or 1h30m',
      read: (text) => {
        const ms = parseGoDuration(text);
        return ms !== undefined && ms > 0 ? ms : undefined;
      },
    }),
  };
}

export type WaitFlagValues = FlagValues<ReturnType<typeof waitFlags>>;

/** Returns the time limit, or undefined if the command does not wait. Throws UsageError. */
export function waitLimitMs({ wait, timeoutMs }: WaitFlagValues, defaultTimeout: string): number | undefined {
  if (wait) return timeoutMs ?? parseGoDuration(defaultTimeout);
  if (timeoutMs === undefined) return undefined;
  throw new UsageError('Cannot use --timeout: the command does not wait; add --wait');
}
