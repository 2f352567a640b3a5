/**
 * The API server without a network: store, kinds, admission and handlers, composed. What the HTTPS listener serves and
 * what tests run in one process.
 */
import { admissionChain } from '#engine/admission/admission.ts';
import { customKindLifecycle } from '#engine/admission/custom-kind-lifecycle.ts';
import { namespaceLifecycle } from '#engine/admission/namespace-lifecycle.ts';
import { noAggregation } from '#engine/aggregation/aggregation.ts';
import { createApi } from '#engine/api.ts';
import { auditToLog } from '#engine/audit.ts';
import { builtInAuthorizer, type Authorizer } from '#engine/auth/authorize.ts';
import type { TokenLookup } from '#engine/auth/tokens.ts';
import { healthChecks } from '#engine/health.ts';
import { createMetrics } from '#engine/metrics.ts';
import { createPaths } from '#engine/paths.ts';
import { customResourceDefinitions } from '#engine/registry/crd/custom-resource-definitions.ts';
import { trackCustomKinds } from '#engine/registry/custom-kinds.ts';
import { reviewResources } from '#engine/registry/kinds/reviews.ts';
import { builtInResources } from '#engine/registry/kinds/all.ts';
import { Registry } from '#engine/registry/registry.ts';
import type { ApiHandler } from '#engine/request.ts';
import type { Store } from '#engine/store/store.ts';
import type { Clock } from '#lib/clock.ts';
import type { Log } from '#lib/log.ts';

export interface CoreOptions {
  readonly store: Store;
  readonly clock: Clock;
  readonly log: Log;
  readonly authorizer?: Authorizer;
  readonly tokens?: TokenLookup;
  /** host:port of the listener, once there is one. */
  serverAddress?(): string;
}

export interface Core {
  readonly handler: ApiHandler;
  readonly registry: Registry;
  /** From now on /readyz says so. */
  markStarted(): void;
  stop(): void;
}

export function createCore(options: CoreOptions): Core {
  const { store, clock, log, authorizer = builtInAuthorizer, tokens = () => undefined, serverAddress } = options;
  const registry = new Registry([...builtInResources, ...reviewResources, customResourceDefinitions]);
  const stopTracking = trackCustomKinds(store, registry, log);
  const metrics = createMetrics(store);
  let started = false;
  const paths = createPaths({
    registry,
    metrics,
    health: healthChecks(store, () => started),
    serverAddress: serverAddress ?? (() => ''),
  });
  const guards = [namespaceLifecycle(store), customKindLifecycle(store)];
  const admission = admissionChain({ mutating: guards, validating: [], guards });
  return {
    handler: createApi({
      store,
      clock,
      log,
      registry,
      authorizer,
      tokens,
      metrics,
      admission,
      paths,
      subresources: {},
      aggregation: noAggregation,
      audit: auditToLog(log),
    }),
    registry,
    markStarted() {
      started = true;
    },
    stop: stopTracking,
  };
}
