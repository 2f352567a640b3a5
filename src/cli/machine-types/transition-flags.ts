/** Parses the flags of `update machine-types`. check-options.ts checks what depends on the server. Pure. */
import { DEFAULT_MAX_RESTARTS, validateOptions, type TransitionOptions } from '#api/machine-types/options.ts';
import { UsageError } from '#lib/command-line/command-error.ts';
import { integerFlag, switchFlag, textFlag, type FlagValues } from '#lib/command-line/flag.ts';

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
  name: textFlag({ name: 'name', help: 'Only the virtual machine with this name.' }, 'string'),
  running: switchFlag({ name: 'running', help: 'Only running virtual machines.' }),
  stopped: switchFlag({ name: 'stopped', help: 'Only stopped virtual machines.' }),
  target: textFlag(
    {
      name: 'target-machine-type',
      help: 'The machine type or alias to set; by default the next start uses the default of the KubeVirt object.',
    },
    'string',
  ),
  restartNow: switchFlag(restartNow),
  // The name of the flag in the tests of KubeVirt's proposal.
  restartRequired: { ...switchFlag({ ...restartNow, name: 'restart-required' }), hidden: true },
  maxRestarts: integerFlag(
    {
      name: 'max-restarts',
      help: '--max-restarts=10: With --restart-now, how many virtual machines may restart at a time.',
    },
    undefined,
  ),
  maxFailures: integerFlag(
    { name: 'max-failures', help: 'Stop when more virtual machines than this have failed; no limit by default.' },
    undefined,
  ),
};

interface TransitionArguments {
  readonly args: readonly string[];
  readonly flags: FlagValues<typeof selectionFlags>;
  /** The value of --namespace; undefined = all namespaces. */
  readonly namespace: string | undefined;
}

/** Throws UsageError with a line for each error. */
export function transitionOptions({ args, flags, namespace }: TransitionArguments): TransitionOptions {
  const { labelSelector, name, running, stopped, target, maxFailures = Infinity } = flags;
  if (running && stopped) throw new UsageError('--running and --stopped cannot be combined');
  const options: TransitionOptions = {
    glob: parseGlob(args, flags.glob),
    ...(namespace !== undefined && { namespace }),
    ...(labelSelector !== undefined && { labelSelector }),
    restartNow: flags.restartNow || flags.restartRequired,
    ...(name !== undefined && { name }),
    ...((running || stopped) && { state: running ? 'running' : 'stopped' }),
    ...(target !== undefined && { target }),
    maxRestarts: flags.maxRestarts ?? DEFAULT_MAX_RESTARTS,
    maxFailures,
  };
  const errors = validateOptions(options).map(({ option, fault: error }) => errorText(option, error, options[option]));
  if (errors.length > 0) throw new UsageError(errors.join('\n'));
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

/** The expected values, for errors that do not state them. */
const EXPECTED: Readonly<Partial<Record<keyof TransitionOptions, string>>> = {
  glob: "a glob of machine types, such as '*rhel-8.*'; virtctl update machine-types supported lists types",
  labelSelector: "labels such as 'tier=db,zone in (a,b),!keep'",
  target: 'one that virtctl update machine-types supported lists',
};

function errorText(option: keyof TransitionOptions, error: string, value: unknown): string {
  const flag = FLAG_OF_OPTION[option];
  // A variable of a script may be empty by mistake. That must not select all namespaces.
  if (option === 'namespace' && value === '') return `${flag}: it is empty; omit it to select all namespaces`;
  return EXPECTED[option] === undefined ? `${flag}: ${error}` : `${flag}: ${error}; expected ${EXPECTED[option]}`;
}

/** Returns warnings for flags that have no effect. */
export function findIdleFlags({ maxRestarts, restartNow, restartRequired }: TransitionArguments['flags']): string[] {
  return maxRestarts !== undefined && !restartNow && !restartRequired
    ? ['--max-restarts has no effect without --restart-now: running virtual machines are marked, not restarted']
    : [];
}

/** Words that users may try as subcommands. None is a machine type. */
const COMMAND_WORDS: ReadonlySet<string> = new Set(
  'cancel del describe get help lists ls remove rm show status stop support supports types'.split(' '),
);

function parseGlob([argument, ...more]: readonly string[], flag: string | undefined): string {
  if (more.length > 0) {
    const count = `${more.length + 1} globs are given`;
    throw new UsageError(`${count}; expected one, in quotes, so that the shell does not expand it to file names`);
  }
  if (argument !== undefined && COMMAND_WORDS.has(argument)) {
    throw new UsageError(
      `unknown command ${JSON.stringify(argument)} for "virtctl update machine-types"; expected delete, list or supported, or a glob`,
    );
  }
  if (argument === undefined || flag === undefined || argument === flag) return argument ?? flag ?? '';
  const both = `${JSON.stringify(argument)} and --which-matches-glob ${JSON.stringify(flag)}`;
  throw new UsageError(`two globs are given, ${both}; expected one`);
}
