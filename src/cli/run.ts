/** Runs one call of virtctl, from its arguments to its exit code. main.ts owns the process. */
import { commands, sharedFlags } from '#cli/commands/all-commands.ts';
import type { Terminal, VirtctlContext } from '#cli/command.ts';
import { openConnection, type ApiConnection } from '#cli/connection/api-connection.ts';
import { accessArguments, findAccess, type AccessOptions, type AccessSources } from '#cli/connection/cluster-access.ts';
import { explainMissing } from '#cli/connection/missing-object.ts';
import { clientVersion, renderMismatch, readServerVersion } from '#cli/connection/server-version.ts';
import type { Programs } from '#cli/programs.ts';
import { UNSUPPORTED_COMMANDS } from '#cli/unsupported-commands.ts';
import { CredentialError } from '#client/credentials/credential-source.ts';
import type { Clock } from '#lib/clock.ts';
import { exitCodeOf, renderError } from '#lib/command-line/render-error.ts';
import { resolveCall, runCall, type ProgramTable } from '#lib/command-line/resolve-call.ts';
import { errorMessage } from '#lib/error-message.ts';
import { raceSignal } from '#lib/race-signal.ts';
import { createPainter } from '#lib/terminal/colour.ts';
import { replaceControlsInLines } from '#lib/terminal/display-width.ts';
import { StatusOutput } from '#lib/terminal/status-output.ts';
import { VERSION } from '#lib/version.ts';

/** virtctl as data. */
export const virtctlTable: ProgramTable<VirtctlContext, typeof sharedFlags> = {
  name: 'virtctl',
  intro: 'controls virtual machine related operations on your kubernetes cluster.',
  commands,
  shared: sharedFlags,
  unsupported: UNSUPPORTED_COMMANDS,
};

const TRACE_LEVEL = 6;
const EXPLANATION_MS = 2000;

interface VirtctlCall extends AccessSources {
  /** The arguments without interpreter and script. */
  readonly argv: readonly string[];
  /** The name under which the user called it: `virtctl` or `kubectl virt`. */
  readonly program: string;
  readonly terminal: Terminal;
  readonly clock: Clock;
  readonly programs: Programs;
  /** Resolves at Ctrl-C. Called by commands that run until then. */
  untilInterrupted(): Promise<void>;
  /** Calls `restore` if a signal ends the process. Returns a function that cancels this. */
  onInterrupt?(restore: () => void): () => void;
}

/** Runs a call and returns the exit code. An error is printed on stderr (render-error.ts). */
export async function runVirtctl(call: VirtctlCall): Promise<number> {
  const { terminal, clock, env, onInterrupt } = call;
  const status = new StatusOutput(terminal.stderr, { clock, env, ...(onInterrupt && { onInterrupt }) });
  const link: { api?: ApiConnection } = {};
  try {
    return (await dispatch(call, status, link)) ?? 0;
  } catch (error) {
    // Without credentials the server cannot be asked, and an exec plugin would run again.
    const api = hasCredentialError(error) ? undefined : link.api;
    const mismatch = api && (await askInTime(() => findVersionMismatch(api), clock));
    if (mismatch !== undefined) status.report(`Warning: ${mismatch}`);
    const alternatives = (api && (await askInTime(() => explainMissing(api, error), clock))) ?? '';
    status.report(renderError(error, errorMessage(error).trim() + alternatives));
    return exitCodeOf(error);
  } finally {
    link.api?.close();
  }
}

async function dispatch(
  call: VirtctlCall,
  status: StatusOutput,
  link: { api?: ApiConnection },
): Promise<number | void> {
  const { terminal, clock, env } = call;
  const resolved = resolveCall({ ...virtctlTable, calledAs: call.program }, call.argv);
  if ('text' in resolved) {
    terminal.stdout.write(resolved.text);
    return;
  }
  const { flags } = resolved;
  const connect = async (choice: AccessOptions = flags): Promise<ApiConnection> => {
    link.api ??= openConnection({
      access: findAccess(choice, call),
      userAgent: `virtctl/${VERSION}`,
      clock,
      readFile: call.readFile,
      impersonate: flags.as,
      warn: createWarner(status.report),
      ...(flags.verbosity >= TRACE_LEVEL ? { trace: status.report } : {}),
    });
    return link.api;
  };
  return await runCall<VirtctlContext>(resolved, {
    connect,
    namespace: flags.namespace,
    print: (line) => void terminal.stdout.write(`${replaceControlsInLines(line)}\n`),
    report: status.report,
    paint: createPainter(terminal.stdout, env),
    status,
    terminal,
    clock,
    programs: call.programs,
    accessArguments: accessArguments(flags),
    user: env['USER'] ?? env['LOGNAME'],
    untilInterrupted: () => call.untilInterrupted(),
  });
}

/** Reports whether the error or one of its causes is a CredentialError. */
function hasCredentialError(error: unknown): boolean {
  return error instanceof CredentialError || (error instanceof Error && hasCredentialError(error.cause));
}

/** Returns a function that reports each distinct warning once, like kubectl. */
function createWarner(report: (line: string) => void): (text: string) => void {
  const shown = new Set<string>();
  return (text) => {
    if (!shown.has(text)) report(`Warning: ${text}`);
    shown.add(text);
  };
}

/** Returns a message if client and server versions differ. */
async function findVersionMismatch(api: ApiConnection): Promise<string | undefined> {
  return renderMismatch(clientVersion(), await readServerVersion(api));
}

/** Returns what the server says about an error, or undefined if it does not respond in time. */
async function askInTime<T>(ask: () => Promise<T>, clock: Clock): Promise<T | undefined> {
  const late = new AbortController();
  const stopTimer = clock.after(EXPLANATION_MS, () => late.abort(new Error('too late')));
  try {
    return await raceSignal(ask(), late.signal);
  } catch {
    return undefined;
  } finally {
    stopTimer();
  }
}
