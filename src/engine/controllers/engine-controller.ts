/** What a controller of the engine is to start.ts: an identity of its own, and a way to start it. */
import type { Client } from '#client/client.ts';
import type { Informer } from '#client/informer.ts';
import type { Registry } from '#engine/registry/registry.ts';
import type { KubeObject, ResourceType } from '#kube/meta.ts';
import type { Clock } from '#lib/clock.ts';
import type { Log } from '#lib/log.ts';
import type { RunningController } from '#runtime/controller.ts';
import type { EventSink } from '#runtime/events.ts';

export interface ControllerParts {
  /** Acts under the controller's own account, with no more rights than its role gives. */
  readonly client: Client;
  /** One for each kind, shared by all controllers, started by start.ts. */
  informer<T extends KubeObject>(type: ResourceType<T>): Informer<T>;
  /** Which kinds are served now. */
  readonly registry: Registry;
  readonly clock: Clock;
  readonly log: Log;
  readonly events: EventSink;
  readonly signal: AbortSignal;
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
