/** What a controller of the engine is to start.ts: an identity of its own, and a way to start it. */
import type { ControllerParts as CommonParts } from '#runtime/controller-parts.ts';
import type { Registry } from '#engine/registry/registry.ts';
import type { RunningController } from '#runtime/controller.ts';

export interface ControllerParts extends Omit<CommonParts, 'metrics'> {
  /** Which kinds are served now. */
  readonly registry: Registry;
}

export interface EngineController {
  /**
   * The service account in kube-system under which it acts, as in Kubernetes (`job-controller`); its role is
   * `system:controller:<account>` in auth/rbac/.
   */
  readonly account: string;
  /** Who Events say they are from, where people know it under another name than its account's. */
  readonly eventSource?: string;
  /** `parts` has all that runtime's startController wants. */
  start(parts: ControllerParts): RunningController | readonly RunningController[];
}
