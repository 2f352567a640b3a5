/** One call of virtctl, from its words to its exit code. The process itself is main.ts's. */
import { openConnection, type ApiConnection } from '#cli/api-connection.ts';
import { accessFlags, findAccess, type AccessSources } from '#cli/cluster-access.ts';
import type { Command, CommandContext, Terminal } from '#cli/command.ts';
import { console } from '#cli/commands/console.ts';
import { pause } from '#cli/commands/pause.ts';
import { reset } from '#cli/commands/reset.ts';
import { restart } from '#cli/commands/restart.ts';
import { softReboot } from '#cli/commands/soft-reboot.ts';
import { start } from '#cli/commands/start.ts';
import { stop } from '#cli/commands/stop.ts';
import { unpause } from '#cli/commands/unpause.ts';
import { version } from '#cli/commands/version.ts';
import { CommandError, integerFlag, parseArgs, switchFlag } from '#cli/flags.ts';
import { commandHelp, overview } from '#cli/help.ts';
import { messageOf } from '#cli/message-of.ts';
import { clientVersion, mismatchText, serverVersion } from '#cli/server-version.ts';
import type { Clock } from '#lib/clock.ts';
import { raced } from '#lib/raced.ts';
import { VERSION } from '#lib/version.ts';

export const commands: readonly Command[] = [console, pause, reset, restart, softReboot, start, stop, unpause, version];

const sharedFlags = {
  ...accessFlags,
  verbosity: integerFlag({ name: 'v', short: 'v', help: 'log level V; requests are shown from 6 on' }, 0),
  help: switchFlag({ name: 'help', short: 'h', help: 'help for the command' }),
};

const TRACE_LEVEL = 6;
const VERSION_WAIT_MS = 2000;

export interface Call extends AccessSources {
  /** Without the interpreter and the script. */
  readonly argv: readonly string[];
  /** How the user calls it: `virtctl`, `kubectl virt`. */
  readonly program: string;
  readonly terminal: Terminal;
  readonly clock: Clock;
}

/** The exit code. Errors are one line on stderr each. */
export async function runVirtctl(call: Call): Promise<number> {
  const { stderr } = call.terminal;
  const link: { api?: ApiConnection } = {};
  try {
    await dispatch(call, link);
    return 0;
  } catch (error) {
    const mismatch = link.api === undefined ? undefined : await mismatchOf(link.api, call.clock);
    if (mismatch !== undefined) stderr.write(`${mismatch}\n`);
    stderr.write(`${messageOf(error).trim()}\n`);
    return 1;
  } finally {
    link.api?.close();
  }
}

async function dispatch(call: Call, link: { api?: ApiConnection }): Promise<void> {
  const { program, terminal, clock } = call;
  const { command, rest } = chosen(call);
  if (command === undefined) {
    terminal.stdout.write(overview(program, commands));
    return;
  }
  const { flags, args } = parseArgs({ ...command.flags, ...sharedFlags }, rest);
  if (flags.help) {
    terminal.stdout.write(commandHelp(program, command, sharedFlags));
    return;
  }
  if (args.length !== command.args) {
    throw new CommandError(`accepts ${command.args} arg(s), received ${args.length}`);
  }
  const connect = async (): Promise<ApiConnection> => {
    link.api ??= openConnection({
      access: findAccess(flags, call),
      userAgent: `virtctl/${VERSION}`,
      clock,
      readFile: call.readFile,
      impersonate: flags.as,
      ...(flags.verbosity >= TRACE_LEVEL ? { trace: (line: string) => void terminal.stderr.write(`${line}\n`) } : {}),
    });
    return link.api;
  };
  const print = (line: string) => void terminal.stdout.write(`${line}\n`);
  const context: CommandContext<unknown> = { args, flags, connect, print, terminal, clock };
  await command.run(context as CommandContext<never>);
}

/** The command, and the words without it; undefined = the user wants the overview. Throws CommandError. */
function chosen({ argv, program }: Call): { readonly command: Command | undefined; readonly rest: readonly string[] } {
  const at = commandIndex(argv);
  const name = at < 0 ? undefined : argv[at];
  const rest = argv.toSpliced(at < 0 ? argv.length : at, 1);
  if (name === 'help') {
    const topic = rest.find((word) => !word.startsWith('-'));
    if (topic === undefined) return { command: undefined, rest };
    return { command: known(topic, program), rest: ['--help'] };
  }
  if (name !== undefined) return { command: known(name, program), rest };
  // Says what is wrong with flags that stand alone.
  parseArgs(sharedFlags, argv);
  return { command: undefined, rest };
}

/** Words after which the next one is their value. */
const BEFORE_VALUE: ReadonlySet<string> = new Set(
  Object.values(sharedFlags).flatMap(({ name, short, value }) =>
    value === '' ? [] : [`--${name}`, ...(short === undefined ? [] : [`-${short}`])],
  ),
);

/** Global flags may stand before the command; their values are not it. */
function commandIndex(argv: readonly string[]): number {
  for (let i = 0; i < argv.length; i++) {
    const word = argv[i]!;
    if (BEFORE_VALUE.has(word)) i++;
    else if (!word.startsWith('-')) return i;
  }
  return -1;
}

function known(name: string, program: string): Command {
  const command = commands.find((one) => one.name === name);
  if (command !== undefined) return command;
  throw new CommandError(`unknown command ${JSON.stringify(name)} for ${JSON.stringify(program)}`);
}

/** A server that does not tell its version soon has nothing to say about it. */
async function mismatchOf(api: ApiConnection, clock: Clock): Promise<string | undefined> {
  const late = new AbortController();
  const stopTimer = clock.after(VERSION_WAIT_MS, () => late.abort(new Error('too late')));
  try {
    return mismatchText(clientVersion(), await raced(serverVersion(api), late.signal));
  } catch {
    return undefined;
  } finally {
    stopTimer();
  }
}
