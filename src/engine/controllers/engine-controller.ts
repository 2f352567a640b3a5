/** A controller of the engine as start.ts sees it: an account to act under and a start function. */
import type { ControllerParts as CommonParts } from '#runtime/controller-parts.ts';
import type { Registry } from '#engine/registry/registry.ts';
import type { RunningController } from '#runtime/controller.ts';

export interface EngineControllerParts extends Omit<CommonParts, 'metrics'> {
  /** The kinds that are served. It changes as definitions are created and deleted. */
  readonly registry: Registry;
}

export interface EngineController {
  /**
   * The service account in kube-system that the controller acts under, as in Kubernetes: `job-controller`. Its role is
   * `system:controller:<account>` in auth/rbac/.
   */
  readonly account: string;
  /** The source component of its Events, if Kubernetes uses another name than the account's there. */
  readonly eventSource?: string;
  /** `parts` contains everything that startController of the runtime requires. */
  start(parts: EngineControllerParts): RunningController | readonly RunningController[];
}
