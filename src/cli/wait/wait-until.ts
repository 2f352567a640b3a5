/** `--wait`: reads the state of an object until the request has taken effect, and shows it meanwhile. */
import { CredentialError } from '#client/credentials/credential-source.ts';
import { ApiError } from '#kube/api-error.ts';
import { CommandError } from '#lib/command-line/command-error.ts';
import { errorMessage } from '#lib/error-message.ts';
import { sleepAlive } from '#lib/keep-alive.ts';
import { secondsText } from '#lib/terminal/progress-text.ts';
import type { ProgressText, StatusOutput } from '#lib/terminal/status-output.ts';

const POLL_INTERVAL_MS = 500;

/** The limit is reached. What was asked for may still happen. */
export class WaitLimitError extends CommandError {
  override name = 'WaitLimitError';
}

/** The outcome of one reading. */
export type WaitState<T = string> =
  /** The request has taken effect. `last` is the final state of the progress, if it is of interest. */
  | { readonly done: T; readonly last?: string }
  /** The request cannot take effect any more. A complete error message. */
  | { readonly failed: string }
  /** The state of the object, as one line, or as progress. */
  | { readonly waiting: string | WaitProgress };

export interface WaitProgress extends ProgressText {
  readonly plain: string;
  /** Another phase is shown at once, another text of the same phase at intervals. By default, the text is the phase. */
  readonly phase?: string;
}

interface Wait<T> {
  /** The error message at the limit begins with this, such as `Cannot confirm that VM db is stopped`. */
  readonly problem: string;
  /** The advice to the user at the limit and at Ctrl-C: that the work continues, and where to look. Ends the message. */
  readonly advice: string;
  readonly limitMs: number;
  /** Reads the state. Errors of a server that restarts are tolerated until the limit. */
  read(): Promise<WaitState<T>>;
}

/** Returns the result. Throws CommandError if it fails, and WaitLimitError at the limit. */
export async function waitUntil<T>({ problem, advice, limitMs, read }: Wait<T>, status: StatusOutput): Promise<T> {
  const { clock } = status;
  const beganAtMs = clock.elapsed();
  const progress = status.begin({ interrupted: `No longer waiting: ${advice}` });
  let [shownPhase, last]: (string | undefined)[] = [];
  try {
    for (;;) {
      const state = await readTolerantly(read);
      if ('done' in state) {
        last = state.last;
        return state.done;
      }
      if ('failed' in state) throw new CommandError(state.failed);
      const text: WaitProgress = typeof state.waiting === 'string' ? { plain: state.waiting } : state.waiting;
      const { plain, phase = plain } = text;
      progress.show({ ...text, isNewPhase: phase !== shownPhase });
      shownPhase = phase;
      if (clock.elapsed() - beganAtMs >= limitMs) {
        const after = secondsText(limitMs / 1000);
        throw new WaitLimitError(`${problem}: after ${after}, the state is "${plain}"; ${advice}`);
      }
      await sleepAlive(clock, POLL_INTERVAL_MS);
    }
  } finally {
    progress.end(last);
  }
}

async function readTolerantly<T>(read: () => Promise<WaitState<T>>): Promise<WaitState<T>> {
  try {
    return await read();
  } catch (error) {
    if (!isTemporary(error)) throw error;
    return { waiting: errorMessage(error) };
  }
}

/** Reports whether a later request may succeed: the server is overloaded, or does not respond. */
function isTemporary(error: unknown): boolean {
  if (error instanceof ApiError) return error.code >= 500 || error.code === 429;
  return error instanceof CommandError && !(error.cause instanceof CredentialError);
}
