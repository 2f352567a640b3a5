/** What every controller is started with, whoever starts it: runtime's startController wants no more. */
import type { Client } from '#client/client.ts';
import type { Informer } from '#client/informer.ts';
import type { KubeObject, ResourceType } from '#kube/meta.ts';
import type { Clock } from '#lib/clock.ts';
import type { Log } from '#lib/log.ts';
import type { EventSink } from '#runtime/events.ts';
import type { Metrics } from '#runtime/metrics.ts';

export interface ControllerParts {
  /** Acts under the controller's own account, with no more rights than its role gives. */
  readonly client: Client;
  /** One for each kind, shared by all controllers, started by whoever starts them. `addIndex` gives it an index. */
  informer<T extends KubeObject>(type: ResourceType<T>): Informer<T>;
  readonly clock: Clock;
  readonly log: Log;
  readonly events: EventSink;
  /** One for all. */
  readonly metrics: Metrics;
  readonly signal: AbortSignal;
}
