/**
 * The options of a transition: virtctl writes them to the environment of the Job's container, and the Job reads them
 * there. Errors name the option, so that virtctl can report the flag and the Job the variable.
 */
import { parseGlob } from '#api/validation/glob.ts';
import { isMachineTypeName } from '#api/validation/spec/machine.ts';
import { parseLabelSelector } from '#kube/selectors/label-selector.ts';
import { nameErrors } from '#kube/names.ts';
import { errorMessage } from '#lib/error-message.ts';

export interface TransitionOptions {
  /** Glob of the machine types to replace. */
  readonly glob: string;
  /** Absent: all namespaces. */
  readonly namespace?: string;
  /** Selects VMs by their labels. */
  readonly labelSelector?: string;
  /** Restarts running VMs instead of marking them. */
  readonly restartNow: boolean;
  /** Name of a single VM. */
  readonly name?: string;
  readonly state?: 'running' | 'stopped';
  /** The new machine type. Absent: the type is cleared, and the VM gets the default when it starts. */
  readonly target?: string;
  /** Number of concurrent restarts. */
  readonly maxRestarts: number;
  /** The job ends after more failures than this; Infinity: no limit. */
  readonly maxFailures: number;
}

export const DEFAULT_MAX_RESTARTS = 10;
/** Limit of concurrent restarts: each needs a write and a watch. */
const MAX_CONCURRENT_RESTARTS = 1000;
/** The largest number of failures that can be configured. */
const MAX_ALLOWED_FAILURES = 999_999_999;
const MAX_GLOB = 256;
const MAX_SELECTOR = 4096;

interface OptionError {
  readonly option: keyof TransitionOptions;
  /** Text that follows the name of the option and a colon. */
  readonly fault: string;
}

/** Environment variables of the options, in the order of the container. */
export const ENV_OF_OPTIONS = {
  glob: 'JOB_GLOB',
  namespace: 'JOB_NAMESPACE',
  labelSelector: 'JOB_LABEL_SELECTOR',
  restartNow: 'JOB_RESTART_NOW',
  name: 'JOB_NAME_OF_VM',
  state: 'JOB_STATE',
  target: 'JOB_TARGET',
  maxRestarts: 'JOB_MAX_RESTARTS',
  maxFailures: 'JOB_MAX_FAILURES',
} as const satisfies Record<keyof TransitionOptions, string>;

export interface EnvVariable {
  readonly name: string;
  readonly value: string;
}

/** Options that are not set are left out. */
export function optionsToEnv(options: TransitionOptions): EnvVariable[] {
  return (Object.keys(ENV_OF_OPTIONS) as (keyof TransitionOptions)[]).flatMap((option) => {
    const value = options[option];
    if (value === undefined || value === Infinity) return [];
    return [{ name: ENV_OF_OPTIONS[option], value: String(value) }];
  });
}

/** Empty variables count as absent. Each error begins with the name of its variable. */
export function optionsFromEnv(
  env: Readonly<Record<string, string | undefined>>,
): { options: TransitionOptions } | { faults: string[] } {
  const { options, faults } = parseOptions((option) => env[ENV_OF_OPTIONS[option]]);
  if (faults.length === 0) return { options };
  return { faults: faults.map(({ option, fault }) => `${ENV_OF_OPTIONS[option]}: ${fault}`) };
}

/** Parses options from text, as in flags or variables; absent and empty are the same. */
export function parseOptions(textOf: (option: keyof TransitionOptions) => string | undefined): {
  readonly options: TransitionOptions;
  readonly faults: readonly OptionError[];
} {
  const faults: OptionError[] = [];
  const read = <T>(option: keyof TransitionOptions, fallback: T, parse: (text: string) => Parsed<T>): T => {
    const text = textOf(option);
    if (!text) return fallback;
    const parsed = parse(text);
    if ('value' in parsed) return parsed.value;
    faults.push({ option, fault: parsed.fault });
    return fallback;
  };
  const options: TransitionOptions = {
    glob: textOf('glob') ?? '',
    ...optional('namespace', textOf('namespace')),
    ...optional('labelSelector', textOf('labelSelector')),
    restartNow: read('restartNow', false, parseBool),
    ...optional('name', textOf('name')),
    ...optional('state', read<TransitionOptions['state']>('state', undefined, parseState)),
    ...optional('target', textOf('target')),
    maxRestarts: read('maxRestarts', DEFAULT_MAX_RESTARTS, parseCount),
    maxFailures: read('maxFailures', Infinity, parseCount),
  };
  return { options, faults: [...validateOptions(options), ...faults] };
}

type Parsed<T> = { readonly value: T } | { readonly fault: string };

function optional<K extends string, T>(key: K, value: T | undefined): { [key in K]?: T } {
  return (value === undefined || value === '' ? {} : { [key]: value }) as { [key in K]?: T };
}

/** The spellings of Go's strconv.ParseBool. */
const TRUE: ReadonlySet<string> = new Set(['1', 't', 'T', 'TRUE', 'true', 'True']);
const FALSE: ReadonlySet<string> = new Set(['0', 'f', 'F', 'FALSE', 'false', 'False']);

function parseBool(text: string): Parsed<boolean> {
  if (TRUE.has(text)) return { value: true };
  return FALSE.has(text) ? { value: false } : { fault: `${JSON.stringify(text)} is not a boolean` };
}

function parseState(text: string): Parsed<TransitionOptions['state']> {
  if (text === 'running' || text === 'stopped') return { value: text };
  return { fault: `${JSON.stringify(text)} is neither "running" nor "stopped"` };
}

function parseCount(text: string): Parsed<number> {
  return /^[0-9]{1,9}$/.test(text) ? { value: Number(text) } : { fault: `${JSON.stringify(text)} is not a number` };
}

/** Validates typed options. The KubeVirt object decides elsewhere whether the target is allowed. */
export function validateOptions(options: TransitionOptions): OptionError[] {
  const { glob, namespace, labelSelector, name, target, maxRestarts, maxFailures } = options;
  const faults: OptionError[] = [];
  const add = (option: keyof TransitionOptions, ...texts: string[]) => {
    for (const fault of texts) faults.push({ option, fault });
  };
  if (glob === '') add('glob', 'no machine type was specified');
  else if (glob.length > MAX_GLOB) add('glob', `must be no more than ${MAX_GLOB} characters`);
  else if (parseGlob(glob) === undefined) add('glob', `${JSON.stringify(glob)}: syntax error in pattern`);
  if (namespace !== undefined) add('namespace', ...prefixWithValue(namespace, nameErrors('label', namespace)));
  if (labelSelector !== undefined) add('labelSelector', ...checkSelector(labelSelector));
  if (name !== undefined) add('name', ...prefixWithValue(name, nameErrors('subdomain', name)));
  if (target !== undefined && !isMachineTypeName(target))
    add('target', ...prefixWithValue(target, ['is not a machine type']));
  if (!(Number.isInteger(maxRestarts) && maxRestarts >= 1 && maxRestarts <= MAX_CONCURRENT_RESTARTS)) {
    add('maxRestarts', `must be between 1 and ${MAX_CONCURRENT_RESTARTS}`);
  }
  if (
    !(
      maxFailures === Infinity ||
      (Number.isInteger(maxFailures) && maxFailures >= 0 && maxFailures <= MAX_ALLOWED_FAILURES)
    )
  ) {
    add('maxFailures', `must be between 0 and ${MAX_ALLOWED_FAILURES}`);
  }
  return faults;
}

const prefixWithValue = (text: string, errors: readonly string[]) =>
  errors.map((error) => `${JSON.stringify(text)} ${error}`);

function checkSelector(text: string): string[] {
  if (text.length > MAX_SELECTOR) return [`must be no more than ${MAX_SELECTOR} characters`];
  try {
    parseLabelSelector(text);
    return [];
  } catch (error) {
    return [errorMessage(error)];
  }
}
