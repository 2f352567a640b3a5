/** `selfsame update-machine-types`: the program in the pod of the Job. Puts the parts of one run together. */
import { JOBS, type Job } from '#api/machine-types/kinds.ts';
import { optionsFromEnv, type TransitionOptions } from '#api/machine-types/options.ts';
import type { Client } from '#client/client.ts';
import { createHttpTransport } from '#client/http.ts';
import { KubeconfigError, type ReadFile } from '#client/kubeconfig.ts';
import { createClient } from '#client/rest-client.ts';
import { ApiError } from '#kube/api-error.ts';
import type { Stored } from '#kube/meta.ts';
import type { Clock } from '#lib/clock.ts';
import type { Log } from '#lib/log.ts';
import { VERSION } from '#lib/version.ts';
import { giveUpJob } from '#transition/give-up-job.ts';
import { accessOf, JobAccessError, jobNameOf, type Environment } from '#transition/job-access.ts';
import { persist } from '#transition/persist.ts';
import { runTransition, TransitionError } from '#transition/run-transition.ts';

export interface ProgramParts {
  readonly env: Environment;
  readonly readFile: ReadFile;
  readonly clock: Clock;
  readonly log: Log;
  readonly signal: AbortSignal;
}

type Outcome = 'done' | { readonly failed: string };

/** What went wrong is one sentence for people. Rejects with the reason of the signal. */
export async function runTransitionProgram(parts: ProgramParts): Promise<Outcome> {
  const asked = optionsFromEnv(parts.env);
  try {
    return await withJob(parts, async (client, job) => {
      const outcome = 'faults' in asked ? wrongOptions(asked) : await run(parts, client, job, asked);
      if (outcome !== 'done') await giveUpJob({ ...parts, client }, job);
      return outcome;
    });
  } catch (error) {
    if (parts.signal.aborted) throw error;
    if ('faults' in asked) return wrongOptions(asked);
    if (isPlain(error)) return { failed: error.message };
    throw error;
  }
}

const wrongOptions = ({ faults }: { readonly faults: readonly string[] }): Outcome => ({ failed: faults.join('; ') });

async function withJob(
  parts: ProgramParts,
  work: (client: Client, job: Stored<Job>) => Promise<Outcome>,
): Promise<Outcome> {
  const { env, readFile, clock, signal } = parts;
  const access = accessOf(env, readFile);
  const name = jobNameOf(env, access.tokenFile === undefined ? '' : readFile(access.tokenFile).trim());
  const transport = createHttpTransport(access, { userAgent: `selfsame-transition/${VERSION}`, clock });
  try {
    const client = createClient(transport);
    return await work(client, await persist(parts, 'read the Job', () => client.get(JOBS, name, { signal })));
  } finally {
    transport.close();
  }
}

/** Whoever runs it again after a failure comes to the same end. */
async function run(
  { clock, log, signal }: ProgramParts,
  client: Client,
  { metadata }: Stored<Job>,
  { options }: { readonly options: TransitionOptions },
): Promise<Outcome> {
  const { namespace = '', name, uid } = metadata;
  try {
    const outcome = await runTransition({ client, job: { namespace, name, uid }, options, clock, log, signal });
    if (outcome === 'done') return outcome;
    return { failed: `more than ${options.maxFailures} VMs failed: virtctl update machine-types list tells which` };
  } catch (error) {
    if (error instanceof TransitionError) return { failed: error.message };
    throw error;
  }
}

/** Says all that there is to say. */
function isPlain(error: unknown): error is Error {
  return [JobAccessError, KubeconfigError, ApiError].some((kind) => error instanceof kind);
}
