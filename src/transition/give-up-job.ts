/**
 * Ends a Job whose next try would come to the same end. The Job restarts its container after each failure, many times,
 * because most of them pass; with a backoffLimit of 0, which may be changed while it runs, the next restart is the last.
 */
import { JOBS, type Job } from '#api/machine-types/kinds.ts';
import type { Client } from '#client/client.ts';
import { ApiError } from '#kube/api-error.ts';
import type { Stored } from '#kube/meta.ts';
import { persist, type PersistParts } from '#transition/persist.ts';

export interface GiveUpParts extends PersistParts {
  readonly client: Pick<Client, 'patch'>;
}

/** Once more changes nothing. Where it is refused the Job goes on trying; why it failed must not be lost for that. */
export async function giveUpJob(parts: GiveUpParts, { metadata, spec }: Stored<Job>): Promise<void> {
  if (spec?.backoffLimit === 0) return;
  const { client, log, signal } = parts;
  const { namespace, name, uid } = metadata;
  const body = { metadata: { uid }, spec: { backoffLimit: 0 } };
  try {
    await persist(parts, 'end the Job', () =>
      client.patch(JOBS, { namespace, name }, { type: 'merge', body }, { signal }),
    );
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    log.warn({ err: error }, 'Cannot end the Job');
  }
}
