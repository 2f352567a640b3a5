/**
 * Ends a Job that would fail again in the same way. A Job restarts its container many times, because most failures are
 * temporary. With a backoffLimit of 0, which can be set while the Job runs, the next restart is the last.
 */
import { TRANSITION_JOBS, type TransitionJob } from '#api/machine-types/kinds.ts';
import type { Client } from '#client/client.ts';
import { ApiError } from '#kube/api-error.ts';
import type { Stored } from '#kube/meta.ts';
import { withRetries, type RetryParts } from '#transition/with-retries.ts';

export interface GiveUpParts extends RetryParts {
  readonly client: Pick<Client, 'patch'>;
}

/** Sets the backoffLimit; may be repeated. A refusal is only logged, so that the original failure is still reported. */
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
