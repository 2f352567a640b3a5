/** What a controller of ours is to whoever starts it: an account of its own, and a way to start it. */
import type { RunningController } from '#runtime/controller.ts';
import type { ControllerParts } from '#runtime/controller-parts.ts';

export interface PlaneController {
  /** The service account in SYSTEM_NAMESPACE under which it acts; its role has the same name (operator/roles/). */
  readonly account: string;
  /** Who Events say they are from. */
  readonly eventSource: string;
  /** `parts` has all that runtime's startController wants. */
  start(parts: ControllerParts): readonly RunningController[];
}
