/** All that a decision about a Job may know. */
import type { FailureRecord } from '#engine/controllers/job/backoff.ts';
import type { EnginePod } from '#engine/controllers/kinds.ts';
import type { BatchJob } from '#engine/controllers/job/kinds.ts';
import type { Stored } from '#kube/meta.ts';

export interface JobWorld {
  readonly job: Stored<BatchJob>;
  /** Those that the Job controls. */
  readonly pods: readonly Stored<EnginePod>[];
  /** Controlled by nobody, and selected by the Job, which the API knows to be alive if it may take them. */
  readonly orphans: readonly Stored<EnginePod>[];
  readonly failures: FailureRecord;
  /** Whether a pod of that name, of whomever, is in the namespace. */
  isTaken(name: string): boolean;
  readonly nowMs: number;
}
