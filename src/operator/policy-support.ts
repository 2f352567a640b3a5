/**
 * Detects whether the cluster serves ValidatingAdmissionPolicies. Kubernetes before 1.30 does not; everything else
 * works there.
 */
import type { Reader } from '#client/client.ts';
import { delay } from '#client/abort.ts';
import { isApiError } from '#kube/api-error.ts';
import { backoffMs } from '#lib/backoff.ts';
import type { Clock } from '#lib/clock.ts';
import type { Log } from '#lib/log.ts';
import { POLICIES } from '#kube/cluster-kinds.ts';

export type PolicySupport = 'served' | 'missing';

export const POLICIES_MISSING_MESSAGE = [
  'This cluster serves no ValidatingAdmissionPolicies of admissionregistration.k8s.io/v1; Kubernetes 1.30 and later do.',
  'Missing without them: delete protection, the restriction of nodes to their own objects, the refusal to remove firmware uuids, the refusal of forged snapshot contents, and the validation of the KubeVirt object beyond its schema.',
].join(' ');

interface SupportParts {
  readonly client: Pick<Reader, 'list'>;
  readonly clock: Clock;
  readonly log: Log;
  readonly signal: AbortSignal;
}

const RETRY = { firstMs: 200, maxMs: 10_000 };

/** Retries until the API server responds; returns undefined if the signal aborts before. */
export async function findPolicySupport({
  client,
  clock,
  log,
  signal,
}: SupportParts): Promise<PolicySupport | undefined> {
  for (let failures = 0; !signal.aborted;) {
    try {
      await client.list(POLICIES, { limit: 1, signal });
      return 'served';
    } catch (error) {
      if (isApiError(error, 'NotFound')) return 'missing';
      failures++;
      const delayMs = backoffMs(failures, RETRY);
      if (!signal.aborted) log.warn({ err: error, delayMs }, 'Cannot find out whether policies are served; retrying');
      await delay(clock, delayMs, { signal });
    }
  }
  return undefined;
}
