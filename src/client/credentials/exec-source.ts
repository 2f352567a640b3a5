/**
 * The credential of an exec plugin. The plugin runs when the first request needs it, before its credential expires, and
 * after the server refused the credential.
 *
 *   (none) ──request──► running ──► held ──shortly before it expires──► running
 *      ▲                               └──401──► (none)
 *      └── failed: the next request runs the plugin again
 *
 * Concurrent requests share one run. A run ends early if all of them are aborted.
 */
import { raceSignal } from '#lib/race-signal.ts';
import {
  CredentialError,
  type ClientCredential,
  type CredentialSource,
} from '#client/credentials/credential-source.ts';
import { parseExecCredential } from '#client/credentials/exec-output.ts';
import { buildExecInfo, type ExecPlugin } from '#client/credentials/exec-plugin.ts';
import type { PluginHost, PluginOutcome } from '#client/credentials/plugin-process.ts';

const TIMEOUT_MS = 60_000;
/** The user may have to log in, in a browser for example. */
const LOGIN_TIMEOUT_MS = 10 * 60_000;
const MAX_OUTPUT_BYTES = 1024 * 1024;
/** A credential is renewed this long before it expires, but not in the first four fifths of its lifetime. */
const RENEW_BEFORE_MS = 60_000;
const RENEW_BEFORE_RATIO = 0.2;
/** Time until the next attempt if an early renewal fails. */
const RETRY_MS = 10_000;

interface HeldCredential {
  readonly credential: ClientCredential;
  readonly renewAtMs: number;
  readonly expiresAtMs: number;
}

interface PluginRun {
  readonly result: Promise<ClientCredential>;
  readonly stopping: AbortController;
  waiting: number;
}

export class ExecSource implements CredentialSource {
  readonly #plugin: ExecPlugin;
  readonly #host: PluginHost;
  #held: HeldCredential | undefined;
  #running: PluginRun | undefined;

  constructor(plugin: ExecPlugin, host: PluginHost) {
    this.#plugin = plugin;
    this.#host = host;
  }

  async current({ signal }: { readonly signal?: AbortSignal | undefined } = {}): Promise<ClientCredential> {
    const held = this.#held;
    if (held !== undefined && this.#host.clock.now() < held.renewAtMs) return held.credential;
    signal?.throwIfAborted();
    const run = (this.#running ??= this.#start());
    run.waiting++;
    try {
      return await raceSignal(run.result, signal);
    } finally {
      run.waiting--;
      if (run.waiting === 0 && this.#running === run) {
        // A later request must not join a run that is being stopped.
        this.#running = undefined;
        run.stopping.abort(new CredentialError('the request was cancelled'));
      }
    }
  }

  discard(refused: ClientCredential): void {
    if (this.#held?.credential === refused) this.#held = undefined;
  }

  #start(): PluginRun {
    const stopping = new AbortController();
    const result = this.#renew(stopping.signal).finally(() => {
      if (this.#running === run) this.#running = undefined;
    });
    // Nobody waits for a run that was stopped.
    result.catch(() => {});
    const run: PluginRun = { result, stopping, waiting: 0 };
    return run;
  }

  async #renew(signal: AbortSignal): Promise<ClientCredential> {
    try {
      const { credential, expiresAtMs } = await this.#run(signal);
      const end = expiresAtMs ?? Number.POSITIVE_INFINITY;
      this.#held = { credential, expiresAtMs: end, renewAtMs: renewalTime(this.#host.clock.now(), end) };
      return credential;
    } catch (error) {
      const held = this.#held;
      const nowMs = this.#host.clock.now();
      if (signal.aborted || held === undefined || held.expiresAtMs <= nowMs) throw error;
      this.#held = { ...held, renewAtMs: Math.min(held.expiresAtMs, nowMs + RETRY_MS) };
      return held.credential;
    }
  }

  async #run(signal: AbortSignal) {
    const { command, args, env, interactiveMode, apiVersion } = this.#plugin;
    const { hasTerminal } = this.#host;
    if (interactiveMode === 'Always' && !hasTerminal) {
      throw this.#error('it needs a terminal (interactiveMode Always); run this command in a terminal');
    }
    const interactive = interactiveMode !== 'Never' && hasTerminal;
    const timeoutMs = hasTerminal ? LOGIN_TIMEOUT_MS : TIMEOUT_MS;
    const call = {
      ...{ command, args, interactive, timeoutMs, maxOutputBytes: MAX_OUTPUT_BYTES },
      env: { ...env, KUBERNETES_EXEC_INFO: buildExecInfo(this.#plugin, interactive) },
    };
    const outcome = await this.#host.run(call, { signal });
    if (outcome.kind !== 'exited' || outcome.code !== 0) throw this.#error(this.#describe(outcome, timeoutMs));
    const parsed = parseExecCredential(outcome.stdout, apiVersion);
    if (!('problem' in parsed)) return parsed;
    throw this.#error(`${parsed.problem}; update the plugin or correct exec in the kubeconfig`);
  }

  #describe(outcome: PluginOutcome, timeoutMs: number): string {
    const { installHint } = this.#plugin;
    switch (outcome.kind) {
      case 'not-found':
        return `the program does not exist; ${installHint?.trim() || 'install it, or correct exec in the kubeconfig'}`;
      case 'cannot-start':
        return `the program cannot be started: ${outcome.why}; correct it, or exec in the kubeconfig`;
      case 'timed-out':
        return `the program did not end within ${timeoutMs / 1000} seconds; run it in a terminal to see why`;
      case 'too-long':
        return `its output is longer than ${MAX_OUTPUT_BYTES} bytes; expected an ExecCredential`;
      case 'killed':
        return `the program was ended by ${outcome.signal}; run it in a terminal to see why`;
      case 'exited':
        return `the program failed with exit code ${outcome.code}; see its messages on standard error`;
    }
  }

  #error(problem: string): CredentialError {
    return new CredentialError(`Cannot get credentials from exec plugin "${this.#plugin.command}": ${problem}`);
  }
}

function renewalTime(nowMs: number, expiresAtMs: number): number {
  if (expiresAtMs === Number.POSITIVE_INFINITY) return expiresAtMs;
  return expiresAtMs - Math.min(RENEW_BEFORE_MS, Math.max(0, expiresAtMs - nowMs) * RENEW_BEFORE_RATIO);
}
