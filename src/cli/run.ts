/** Runs one call of virtctl, from its arguments to its exit code. main.ts owns the process. */
import { openConnection, type ApiConnection } from '#cli/connection/api-connection.ts';
import {
  accessFlags,
  accessArguments,
  findAccess,
  type AccessOptions,
  type AccessSources,
} from '#cli/connection/cluster-access.ts';
import { findArgCountError, type CommandContext, type CommandEntry, type Terminal } from '#cli/parsing/command.ts';
import { addVolume } from '#cli/commands/addvolume.ts';
import { completeCommand } from '#cli/commands/complete.ts';
import { completion } from '#cli/commands/completion.ts';
import { console } from '#cli/commands/console.ts';
import { create } from '#cli/commands/create.ts';
import { expand } from '#cli/commands/expand.ts';
import { exportGroup } from '#cli/commands/export.ts';
import { identity } from '#cli/commands/identity.ts';
import { imageUpload } from '#cli/commands/image-upload.ts';
import { importGroup } from '#cli/commands/import.ts';
import { migrateCancel } from '#cli/commands/migrate-cancel.ts';
import { migrate } from '#cli/commands/migrate.ts';
import { fslist } from '#cli/commands/fslist.ts';
import { guestosinfo } from '#cli/commands/guestosinfo.ts';
import { userlist } from '#cli/commands/userlist.ts';
import { pause } from '#cli/commands/pause.ts';
import { portForward } from '#cli/commands/port-forward.ts';
import { protect } from '#cli/commands/protect.ts';
import { removeVolume } from '#cli/commands/removevolume.ts';
import { reset } from '#cli/commands/reset.ts';
import { restart } from '#cli/commands/restart.ts';
import { scp } from '#cli/commands/scp.ts';
import { softReboot } from '#cli/commands/soft-reboot.ts';
import { ssh } from '#cli/commands/ssh.ts';
import { start } from '#cli/commands/start.ts';
import { state } from '#cli/commands/state.ts';
import { stop } from '#cli/commands/stop.ts';
import { unpause } from '#cli/commands/unpause.ts';
import { unprotect } from '#cli/commands/unprotect.ts';
import { update } from '#cli/commands/update.ts';
import { version } from '#cli/commands/version.ts';
import { vnc } from '#cli/commands/vnc.ts';
import { findCommand } from '#cli/parsing/find-command.ts';
import { CommandError, integerFlag, parseArgs, switchFlag } from '#cli/parsing/flags.ts';
import { commandHelp } from '#cli/parsing/help.ts';
import { errorMessage } from '#lib/error-message.ts';
import { clientVersion, renderMismatch, readServerVersion } from '#cli/connection/server-version.ts';
import type { Programs } from '#cli/programs.ts';
import { CredentialError } from '#client/credential-source.ts';
import type { Clock } from '#lib/clock.ts';
import { raceSignal } from '#lib/race-signal.ts';
import { VERSION } from '#lib/version.ts';

export const sharedFlags = {
  ...accessFlags,
  verbosity: integerFlag({ name: 'v', short: 'v', help: 'log level; 6 and higher also log requests' }, 0),
  help: switchFlag({ name: 'help', short: 'h', help: 'help for the command' }),
};

export const commands: readonly CommandEntry[] = [
  addVolume,
  completion,
  console,
  create,
  expand,
  exportGroup,
  fslist,
  guestosinfo,
  identity,
  imageUpload,
  importGroup,
  migrate,
  migrateCancel,
  pause,
  portForward,
  protect,
  removeVolume,
  reset,
  restart,
  scp,
  softReboot,
  ssh,
  start,
  state,
  stop,
  unpause,
  unprotect,
  update,
  userlist,
  version,
  vnc,
  completeCommand(() => commands, sharedFlags),
];

const TRACE_LEVEL = 6;
const VERSION_WAIT_MS = 2000;

export interface VirtctlCall extends AccessSources {
  /** The arguments without interpreter and script. */
  readonly argv: readonly string[];
  /** The name under which the user called it: `virtctl` or `kubectl virt`. */
  readonly program: string;
  readonly terminal: Terminal;
  readonly clock: Clock;
  readonly programs: Programs;
  /** Resolves at Ctrl-C. Called by commands that run until then. */
  untilInterrupted(): Promise<void>;
}

/** Runs a call and returns the exit code. Each error is one line on stderr. */
export async function runVirtctl(call: VirtctlCall): Promise<number> {
  const { stderr } = call.terminal;
  const link: { api?: ApiConnection } = {};
  try {
    return (await dispatch(call, link)) ?? 0;
  } catch (error) {
    // Without credentials the server cannot be asked, and an exec plugin would run again.
    const api = hasCredentialError(error) ? undefined : link.api;
    const mismatch = api === undefined ? undefined : await findVersionMismatch(api, call.clock);
    if (mismatch !== undefined) stderr.write(`${mismatch}\n`);
    stderr.write(`${errorMessage(error).trim()}\n`);
    return 1;
  } finally {
    link.api?.close();
  }
}

async function dispatch(call: VirtctlCall, link: { api?: ApiConnection }): Promise<number | void> {
  const { program, terminal, clock } = call;
  const found = findCommand(commands, sharedFlags, call);
  if ('overview' in found) {
    terminal.stdout.write(found.overview);
    return;
  }
  const { command, path, rest } = found;
  const { flags, args } = parseArgs({ ...command.flags, ...sharedFlags }, rest);
  if (flags.help) {
    terminal.stdout.write(commandHelp(program, path, command, sharedFlags));
    return;
  }
  const argError = findArgCountError(command.args, args.length);
  if (argError !== undefined) throw new CommandError(argError);
  const connect = async (choice: AccessOptions = flags): Promise<ApiConnection> => {
    link.api ??= openConnection({
      access: findAccess(choice, call),
      userAgent: `virtctl/${VERSION}`,
      clock,
      readFile: call.readFile,
      impersonate: flags.as,
      warn: printWarningsTo(terminal.stderr),
      ...(flags.verbosity >= TRACE_LEVEL ? { trace: (line: string) => void terminal.stderr.write(`${line}\n`) } : {}),
    });
    return link.api;
  };
  const print = (line: string) => void terminal.stdout.write(`${line}\n`);
  const context: CommandContext<unknown> = {
    args,
    flags,
    connect,
    namespace: flags.namespace,
    print,
    terminal,
    clock,
    programs: call.programs,
    accessArguments: accessArguments(flags),
    user: call.env['USER'] ?? call.env['LOGNAME'],
    untilInterrupted: () => call.untilInterrupted(),
  };
  return await command.run(context as CommandContext<never>);
}

/** Reports whether the error or one of its causes is a CredentialError. */
function hasCredentialError(error: unknown): boolean {
  return error instanceof CredentialError || (error instanceof Error && hasCredentialError(error.cause));
}

/** Prints each distinct warning once, like kubectl. */
function printWarningsTo(stderr: NodeJS.WritableStream): (text: string) => void {
  const shown = new Set<string>();
  return (text) => {
    if (!shown.has(text)) stderr.write(`Warning: ${text}\n`);
    shown.add(text);
  };
}

/** Returns a message if client and server versions differ, or undefined, also if the server does not respond in time. */
async function findVersionMismatch(api: ApiConnection, clock: Clock): Promise<string | undefined> {
  const late = new AbortController();
  const stopTimer = clock.after(VERSION_WAIT_MS, () => late.abort(new Error('too late')));
  try {
    return renderMismatch(clientVersion(), await raceSignal(readServerVersion(api), late.signal));
  } catch {
    return undefined;
  } finally {
    stopTimer();
  }
}
