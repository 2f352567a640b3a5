/** The flags of `update machine-types`, and what they ask for. What only the server knows is checked later. Pure. */
import { DEFAULT_MAX_RESTARTS, optionFaults, type TransitionOptions } from '#api/machine-types/options.ts';
import { CommandError, integerFlag, switchFlag, textFlag, type FlagValues } from '#cli/flags.ts';

const restartNow = { name: 'restart-now', help: 'Restart running virtual machines, instead of marking them.' };

export const selectionFlags = {
  glob: textFlag(
    { name: 'which-matches-glob', help: 'Glob of the machine types to move away from, instead of the argument.' },
    'string',
  ),
  labelSelector: textFlag(
    { name: 'label-selector', help: 'Only virtual machines with these labels: key1=value1,key2 in (a,b)' },
    'string',
  ),
  name: textFlag({ name: 'name', help: 'Only the virtual machine of this name.' }, 'string'),
  running: switchFlag({ name: 'running', help: 'Only virtual machines that run.' }),
  stopped: switchFlag({ name: 'stopped', help: 'Only virtual machines that do not run.' }),
  target: textFlag(
    {
      name: 'target-machine-type',
      help: 'Set this machine type, for aliases too; without it, the default of the KubeVirt object at the next start.',
    },
    'string',
  ),
  restartNow: switchFlag(restartNow),
  // The name that the proposal's tests have for it.
  restartRequired: { ...switchFlag({ ...restartNow, name: 'restart-required' }), hidden: true },
  maxRestarts: integerFlag(
    { name: 'max-restarts', help: '--max-restarts=10: With --restart-now, how many may be restarting at a time.' },
    DEFAULT_MAX_RESTARTS,
  ),
  maxFailures: integerFlag(
    { name: 'max-failures', help: 'Stop once more virtual machines than this have failed; no limit without it.' },
    undefined,
  ),
};

export interface Asked {
  readonly args: readonly string[];
  readonly flags: FlagValues<typeof selectionFlags>;
  /** As named by the flag of this very call; all of them without it. */
  readonly namespace: string | undefined;
}

/** Throws CommandError, with a line for each fault. */
export function transitionOptions({ args, flags, namespace }: Asked): TransitionOptions {
  const { labelSelector, name, running, stopped, target, maxRestarts, maxFailures = Infinity } = flags;
  if (running && stopped) throw new CommandError('--running and --stopped exclude each other; expected one of them');
  const options: TransitionOptions = {
    glob: globOf(args, flags.glob),
    ...(namespace !== undefined && { namespace }),
    ...(labelSelector !== undefined && { labelSelector }),
    restartNow: flags.restartNow || flags.restartRequired,
    ...(name !== undefined && { name }),
    ...((running || stopped) && { state: running ? 'running' : 'stopped' }),
    ...(target !== undefined && { target }),
    maxRestarts,
    maxFailures,
  };
  const faults = optionFaults(options).map(({ option, fault }) => `${FLAG_OF_OPTION[option]}: ${fault}`);
  if (faults.length > 0) throw new CommandError(faults.join('\n'));
  return options;
}

const FLAG_OF_OPTION: Readonly<Record<keyof TransitionOptions, string>> = {
  glob: '--which-matches-glob',
  namespace: '--namespace',
  labelSelector: '--label-selector',
  restartNow: '--restart-now',
  name: '--name',
  state: '--running',
  target: '--target-machine-type',
  maxRestarts: '--max-restarts',
  maxFailures: '--max-failures',
};

function globOf([argument]: readonly string[], flag: string | undefined): string {
  if (argument === undefined || flag === undefined || argument === flag) return argument ?? flag ?? '';
  const both = `${JSON.stringify(argument)} and --which-matches-glob ${JSON.stringify(flag)}`;
  throw new CommandError(`two globs are given, ${both}; expected one`);
}
