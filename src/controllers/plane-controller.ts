/** What a controller of ours is to whoever starts it: an account of its own, and a way to start it. */
import type { Client } from '#client/client.ts';
import type { Informer } from '#client/informer.ts';
import type { KubeObject, ResourceType } from '#kube/meta.ts';
import type { Clock } from '#lib/clock.ts';
import type { Log } from '#lib/log.ts';
import type { RunningController } from '#runtime/controller.ts';
import type { EventSink } from '#runtime/events.ts';

export interface ControllerParts {
  /** Acts under the controller's own account, with no more rights than its role gives. */
  readonly client: Client;
  /** One for each kind, shared by all controllers, started by whoever starts them. `addIndex` gives it an index. */
  informer<T extends KubeObject>(type: ResourceType<T>): Informer<T>;
  readonly clock: Clock;
  readonly log: Log;
  readonly events: EventSink;
  readonly signal: AbortSignal;
}

export interface PlaneController {
  /** The service account in SYSTEM_NAMESPACE under which it acts; its role has the same name (operator/roles/). */
  readonly account: string;
  /** Who Events say they are from. */
  readonly eventSource: string;
  /** `parts` has all that runtime's startController wants. */
  start(parts: ControllerParts): readonly RunningController[];
}
