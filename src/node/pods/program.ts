/** The commands of this program that pods may run. The starter of the agent provides the way to run them. */
import { TRANSITION_COMMAND } from '#api/machine-types/names.ts';
import { SUPPORTED_FIELDS, hasSupportedSource, type ProgramVariable } from '#node/pods/program-variables.ts';

export interface ProgramProcess {
  /** Called with the output, stdout and stderr in the order of arrival. */
  onOutput(listener: (chunk: Buffer) => void): void;
  /** Exit code; 128 + the signal's number for a killed process, 127 for one that could not be started. Never rejects. */
  readonly exited: Promise<number>;
  kill(signal: 'SIGTERM' | 'SIGKILL'): void;
}

export type RunProgram = (args: readonly string[], env: Readonly<Record<string, string>>) => ProgramProcess;

interface Command {
  /** True if the command is a client of the API, with the pod's service account. */
  readonly needsApiAccess: boolean;
  /** True if the command accepts arguments. */
  readonly takesArgs: boolean;
}

/** The commands that pods may run. All others are for administrators. */
const COMMANDS: ReadonlyMap<string, Command> = new Map([
  ['version', { needsApiAccess: false, takesArgs: true }],
  [TRANSITION_COMMAND, { needsApiAccess: true, takesArgs: false }],
]);

/**
 * The variables with the address of the API and the credentials. Only the agent sets them: the creator of a pod must not
 * point the program to files of this machine.
 */
export const ACCESS_VARIABLES = {
  server: 'SELFSAME_API_SERVER',
  tokenFile: 'SELFSAME_TOKEN_FILE',
  caFile: 'SELFSAME_CA_FILE',
} as const;

/** Other variables, such as NODE_OPTIONS and LD_PRELOAD, could make the process run anything. */
const VARIABLE = /^(SELFSAME|JOB)_[A-Z0-9_]{1,100}$/;
const RESERVED: ReadonlySet<string> = new Set([...Object.values(ACCESS_VARIABLES), 'SELFSAME_KUBECONFIG']);

interface ProgramContainer {
  readonly env?: readonly ProgramVariable[] | undefined;
  readonly command?: readonly string[] | undefined;
  readonly args?: readonly string[] | undefined;
}

/** Returns what forbids a container to run, as the object of "it has", or undefined if it may run. */
export function checkCommand({ command, args = [], env = [] }: ProgramContainer): string | undefined {
  if (command !== undefined && command.length > 0) return 'its own command; use only args';
  const [verb, more] = args;
  if (verb === undefined) return 'no args; the first one must name the command';
  const known = COMMANDS.get(verb);
  if (known === undefined) return `the command "${verb}"; pods may run: ${[...COMMANDS.keys()].join(', ')}`;
  if (more !== undefined && !known.takesArgs)
    return `the argument "${more}"; ${verb} is configured with variables only`;
  return firstOf(env, checkVariable);
}

function checkVariable(variable: ProgramVariable): string | undefined {
  const { name } = variable;
  if (!VARIABLE.test(name)) return `the variable "${name}"; names must begin with SELFSAME_ or JOB_`;
  if (RESERVED.has(name)) return `the variable "${name}", which is reserved for the node`;
  return hasSupportedSource(variable)
    ? undefined
    : `the variable "${name}" with an unsupported source; supported are these fields of the pod: ${SUPPORTED_FIELDS}`;
}

function firstOf<T>(items: readonly T[], find: (item: T) => string | undefined): string | undefined {
  for (const item of items) {
    const found = find(item);
    if (found !== undefined) return found;
  }
  return undefined;
}

/** Reports whether the command of a container is a client of the API. */
export function needsApiAccess({ args = [] }: ProgramContainer): boolean {
  return COMMANDS.get(args[0] ?? '')?.needsApiAccess ?? false;
}
