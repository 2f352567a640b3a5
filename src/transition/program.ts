/** `selfsame update-machine-types`: the program in the pod of the Job. Puts the parts of one run together. */
import { JOBS } from '#api/machine-types/kinds.ts';
import { optionsFromEnv } from '#api/machine-types/options.ts';
import { createHttpTransport } from '#client/http.ts';
import { KubeconfigError, type ReadFile } from '#client/kubeconfig.ts';
import { createClient } from '#client/rest-client.ts';
import { ApiError } from '#kube/api-error.ts';
import type { Clock } from '#lib/clock.ts';
import type { Log } from '#lib/log.ts';
import { VERSION } from '#lib/version.ts';
import { accessOf, JobAccessError, jobNameOf, type Environment } from '#transition/job-access.ts';
import { persist } from '#transition/persist.ts';
import { runTransition, TransitionError } from '#transition/run-transition.ts';
import { verbsOver } from '#transition/verbs.ts';

export interface ProgramParts {
  readonly env: Environment;
  readonly readFile: ReadFile;
  readonly clock: Clock;
  readonly log: Log;
  readonly signal: AbortSignal;
}

/** What went wrong is one sentence for people. Rejects with the reason of the signal. */
export async function runTransitionProgram(parts: ProgramParts): Promise<'done' | { readonly failed: string }> {
  const { env, readFile, clock, log, signal } = parts;
  const asked = optionsFromEnv(env);
  if ('faults' in asked) return { failed: asked.faults.join('; ') };
  try {
    const access = accessOf(env, readFile);
    const name = jobNameOf(env, access.tokenFile === undefined ? '' : readFile(access.tokenFile).trim());
    const transport = createHttpTransport(access, { userAgent: `selfsame-transition/${VERSION}`, clock });
    try {
      const client = createClient(transport);
      const { metadata } = await persist(parts, 'read the Job', () => client.get(JOBS, name, { signal }));
      const job = { ...name, uid: metadata.uid };
      const { options } = asked;
      const outcome = await runTransition({ client, ask: verbsOver(transport), job, options, clock, log, signal });
      if (outcome === 'done') return outcome;
      return { failed: `more than ${options.maxFailures} VMs failed: virtctl update machine-types list tells which` };
    } finally {
      transport.close();
    }
  } catch (error) {
    if (isPlain(error)) return { failed: error.message };
    throw error;
  }
}

/** Says all that there is to say. */
function isPlain(error: unknown): error is Error {
  return [TransitionError, JobAccessError, KubeconfigError, ApiError].some((kind) => error instanceof kind);
}
