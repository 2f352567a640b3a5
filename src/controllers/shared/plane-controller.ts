/** The interface through which the plane starts a controller. */
import type { RunningController } from '#runtime/controller.ts';
import type { ControllerParts } from '#runtime/controller-parts.ts';

export interface PlaneController {
  /** The service account in SYSTEM_NAMESPACE that the controller uses; its role has the same name (operator/roles/). */
  readonly account: string;
  /** The source component of its Events. */
  readonly eventSource: string;
  start(parts: ControllerParts): readonly RunningController[];
}
