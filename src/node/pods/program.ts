/** Running this program itself as a child process; whoever starts the agent says how. */
import { TRANSITION_COMMAND } from '#api/machine-types/names.ts';
import { FIELDS, hasKnownSource, type ProgramVariable } from '#node/pods/program-variables.ts';

export interface ProgramProcess {
  /** Both outputs, in the order in which they come. */
  onOutput(listener: (chunk: Buffer) => void): void;
  /** The exit code, 128 + the signal's number for one that was killed. Never rejects: what cannot start ends with 127. */
  readonly exited: Promise<number>;
  kill(signal: 'SIGTERM' | 'SIGKILL'): void;
}

export type RunProgram = (args: readonly string[], env: Readonly<Record<string, string>>) => ProgramProcess;

interface Command {
  /** Whether it is a client of the API, under the pod's service account. */
  readonly asksApi: boolean;
  /** Whether more words may follow. */
  readonly takesArgs: boolean;
}

/** The commands that pods may run; everything else of the program is for administrators. */
const COMMANDS: ReadonlyMap<string, Command> = new Map([
  ['version', { asksApi: false, takesArgs: true }],
  [TRANSITION_COMMAND, { asksApi: true, takesArgs: false }],
]);

/** Where the program finds the API and who it is there: the agent says so, never the pod, whose maker has no files here. */
export const ACCESS_VARIABLES = {
  server: 'SELFSAME_API_SERVER',
  tokenFile: 'SELFSAME_TOKEN_FILE',
  caFile: 'SELFSAME_CA_FILE',
} as const;

/** Variables of other names could make the process do anything: NODE_OPTIONS, LD_PRELOAD. */
const VARIABLE = /^(SELFSAME|JOB)_[A-Z0-9_]{1,100}$/;
const RESERVED: ReadonlySet<string> = new Set([...Object.values(ACCESS_VARIABLES), 'SELFSAME_KUBECONFIG']);

export interface ProgramContainer {
  readonly env?: readonly ProgramVariable[] | undefined;
  readonly command?: readonly string[] | undefined;
  readonly args?: readonly string[] | undefined;
}

/** Why it may not run; undefined when it may. */
export function commandFault({ command, args = [], env = [] }: ProgramContainer): string | undefined {
  if (command !== undefined && command.length > 0) return 'a command of its own; only args are taken';
  const [verb, more] = args;
  if (verb === undefined) return 'no args; the first one names the command';
  const known = COMMANDS.get(verb);
  if (known === undefined) return `the command "${verb}"; pods may run: ${[...COMMANDS.keys()].join(', ')}`;
  if (more !== undefined && !known.takesArgs) return `the argument "${more}"; ${verb} is told by variables`;
  return firstOf(env, variableFault);
}

function variableFault(variable: ProgramVariable): string | undefined {
  const { name } = variable;
  if (!VARIABLE.test(name)) return `the variable "${name}"; names begin with SELFSAME_ or JOB_`;
  if (RESERVED.has(name)) return `the variable "${name}"; the node sets it`;
  return hasKnownSource(variable)
    ? undefined
    : `the variable "${name}" from a source that nodes do not read; they read these fields of the pod: ${FIELDS}`;
}

function firstOf<T>(items: readonly T[], find: (item: T) => string | undefined): string | undefined {
  for (const item of items) {
    const found = find(item);
    if (found !== undefined) return found;
  }
  return undefined;
}

export function asksApi({ args = [] }: ProgramContainer): boolean {
  return COMMANDS.get(args[0] ?? '')?.asksApi ?? false;
}
