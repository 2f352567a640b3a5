/** The dependencies of every controller. startController needs nothing else. */
import type { Client } from '#client/client.ts';
import type { Informer } from '#client/informer.ts';
import type { KubeObject, ResourceType } from '#kube/meta.ts';
import type { Clock } from '#lib/clock.ts';
import type { Log } from '#lib/log.ts';
import type { EventSink } from '#runtime/events.ts';
import type { MetricRegistry } from '#lib/metrics/metric-registry.ts';

export interface ControllerParts {
  /** Uses the controller's own account, with the rights of its role. */
  readonly client: Client;
  /**
   * Returns the informer of a kind, which all controllers share and which is started for them. See `addIndex` for
   * indexes.
   */
  informer<T extends KubeObject>(type: ResourceType<T>): Informer<T>;
  readonly clock: Clock;
  readonly log: Log;
  readonly events: EventSink;
  /** Shared by all controllers. */
  readonly metrics: MetricRegistry;
  readonly signal: AbortSignal;
}
