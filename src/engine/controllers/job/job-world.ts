/** The input of a decision about a Job. */
import type { FailureRecord } from '#engine/controllers/job/backoff.ts';
import type { EnginePod } from '#engine/controllers/kinds.ts';
import type { BatchJob } from '#engine/controllers/job/kinds.ts';
import type { Stored } from '#kube/meta.ts';

export interface JobWorld {
  readonly job: Stored<BatchJob>;
  /** The pods that the Job controls. */
  readonly pods: readonly Stored<EnginePod>[];
  /** Pods that the Job selects and that have no controller. If the Job may adopt them, the API confirmed that it exists. */
  readonly orphans: readonly Stored<EnginePod>[];
  readonly failures: FailureRecord;
  /** Reports whether any pod in the namespace has this name. */
  isTaken(name: string): boolean;
  readonly nowMs: number;
}
