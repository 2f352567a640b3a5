/**
 * `selfsame update-machine-types`, the program in the pod of the Job: connects to the API server and runs the
 * transition.
 */
import { TRANSITION_JOBS, type TransitionJob } from '#api/machine-types/kinds.ts';
import { optionsFromEnv, type TransitionOptions } from '#api/machine-types/options.ts';
import type { Client } from '#client/client.ts';
import { createHttpTransport } from '#client/http.ts';
import type { ReadFile } from '#client/kubeconfig.ts';
import { KubeconfigError } from '#client/kubeconfig-fields.ts';
import { createClient } from '#client/rest-client.ts';
import { ApiError } from '#kube/api-error.ts';
import type { Stored } from '#kube/meta.ts';
import type { Clock } from '#lib/clock.ts';
import type { Log } from '#lib/log.ts';
import { VERSION } from '#lib/version.ts';
import { readJobAccess, JobAccessError, findJobName, type JobEnvironment } from '#transition/job-access.ts';
import { withRetries, type RetryParts } from '#transition/with-retries.ts';
import { runTransition, TransitionError } from '#transition/run-transition.ts';

interface ProgramParts {
  readonly env: JobEnvironment;
  readonly readFile: ReadFile;
  readonly clock: Clock;
  readonly log: Log;
  readonly signal: AbortSignal;
}

type ProgramOutcome = 'done' | { readonly failed: string };

/** Runs the Job; `failed` is the message for the user. Rejects with the reason of the signal. */
export async function runTransitionProgram(parts: ProgramParts): Promise<ProgramOutcome> {
  const parsed = optionsFromEnv(parts.env);
  try {
    return await withJob(parts, async (client, job) => {
      const outcome = 'faults' in parsed ? optionsFailure(parsed) : await runForJob(parts, client, job, parsed);
      if (outcome !== 'done') await giveUpJob({ ...parts, client }, job);
      return outcome;
    });
  } catch (error) {
    if (parts.signal.aborted) throw error;
    if ('faults' in parsed) return optionsFailure(parsed);
    if (isSelfExplanatory(error)) return { failed: error.message };
    throw error;
  }
}

const optionsFailure = ({ faults }: { readonly faults: readonly string[] }): ProgramOutcome => ({
  failed: faults.join('; '),
});

async function withJob(
  parts: ProgramParts,
  work: (client: Client, job: Stored<TransitionJob>) => Promise<ProgramOutcome>,
): Promise<ProgramOutcome> {
  const { env, readFile, clock, signal } = parts;
  const access = readJobAccess(env, readFile);
  const name = findJobName(env, access.tokenFile === undefined ? '' : readFile(access.tokenFile).trim());
  const transport = createHttpTransport(access, { userAgent: `selfsame-transition/${VERSION}`, clock });
  try {
    const client = createClient(transport);
    return await work(
      client,
      await withRetries(parts, 'read the Job', () => client.get(TRANSITION_JOBS, name, { signal })),
    );
  } finally {
    transport.close();
  }
}

/** Runs the transition. A failure that it returns would occur again in every retry. */
async function runForJob(
  { clock, log, signal }: ProgramParts,
  client: Client,
  { metadata }: Stored<TransitionJob>,
  { options }: { readonly options: TransitionOptions },
): Promise<ProgramOutcome> {
  const { namespace = '', name, uid } = metadata;
  try {
    const outcome = await runTransition({ client, job: { namespace, name, uid }, options, clock, log, signal });
    if (outcome === 'done') return outcome;
    return { failed: `more than ${options.maxFailures} VMs failed; "virtctl update machine-types list" shows them` };
  } catch (error) {
    if (error instanceof TransitionError) return { failed: error.message };
    throw error;
  }
}

/** Reports whether the message of the error is sufficient without a stack trace. */
function isSelfExplanatory(error: unknown): error is Error {
  return [JobAccessError, KubeconfigError, ApiError].some((kind) => error instanceof kind);
}

interface GiveUpParts extends RetryParts {
  readonly client: Pick<Client, 'patch'>;
}

/**
 * Ends a Job that would fail again in the same way. A Job restarts its container many times, because most failures are
 * temporary. With a backoffLimit of 0, which can be set while the Job runs, the next restart is the last. A refusal is
 * only logged, so that the original failure is still reported. May be repeated.
 */
export async function giveUpJob(parts: GiveUpParts, { metadata, spec }: Stored<TransitionJob>): Promise<void> {
  if (spec?.backoffLimit === 0) return;
  const { client, log, signal } = parts;
  const { namespace, name, uid } = metadata;
  const body = { metadata: { uid }, spec: { backoffLimit: 0 } };
  try {
    await withRetries(parts, 'end the Job', () =>
      client.patch(TRANSITION_JOBS, { namespace, name }, { type: 'merge', body }, { signal }),
    );
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    log.warn({ err: error }, 'Cannot end the Job; it will be retried');
  }
}
