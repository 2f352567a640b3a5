/** Running this program itself as a child process; whoever starts the agent says how. */

export interface ProgramProcess {
  /** Both outputs, in the order in which they come. */
  onOutput(listener: (chunk: Buffer) => void): void;
  /** The exit code, 128 + the signal's number for one that was killed. Never rejects: what cannot start ends with 127. */
  readonly exited: Promise<number>;
  kill(signal: 'SIGTERM' | 'SIGKILL'): void;
}

export type RunProgram = (args: readonly string[], env: Readonly<Record<string, string>>) => ProgramProcess;

/** The commands that pods may run; everything else of the program is for administrators. */
const COMMANDS: ReadonlySet<string> = new Set(['version']);

/** Variables of other names could make the process do anything: NODE_OPTIONS, LD_PRELOAD. */
const VARIABLE = /^(SELFSAME|JOB)_[A-Z0-9_]{1,100}$/;

export interface ProgramContainer {
  readonly env?: readonly { readonly name: string }[] | undefined;
  readonly command?: readonly string[] | undefined;
  readonly args?: readonly string[] | undefined;
}

/** Why it may not run; undefined when it may. */
export function commandFault({ command, args = [], env = [] }: ProgramContainer): string | undefined {
  if (command !== undefined && command.length > 0) return 'a command of its own; only args are taken';
  const [verb] = args;
  if (verb === undefined) return 'no args; the first one names the command';
  if (!COMMANDS.has(verb)) return `the command "${verb}"; pods may run: ${[...COMMANDS].join(', ')}`;
  const strange = env.find(({ name }) => !VARIABLE.test(name));
  return strange === undefined ? undefined : `the variable "${strange.name}"; names begin with SELFSAME_ or JOB_`;
}
