/**
 * The metrics of the API server. Label sets are bounded: served resources, verbs, codes, and a limited number of webhook
 * and policy names, because webhooks and policies come and go, but their counts stay.
 */
import type { Store } from '#engine/store/store.ts';
import type { MetricRegistry } from '#lib/metrics/metric-registry.ts';

export interface EngineMetrics {
  recordRequest(verb: string, resource: string, code: number, seconds: number): void;
  recordWatchStart(resource: string): void;
  recordWatchEnd(resource: string): void;
  recordWebhookCall(kind: string, name: string, outcome: string, seconds: number): void;
  /** Counts a denial of a policy by its action: deny, warn or audit. */
  recordPolicyDenial(policy: string, binding: string, action: string): void;
}

const BOUNDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];
const MAX_NAMED = 1000;
/** Kinds of deleted CustomResourceDefinitions are still counted. */
const MAX_REQUEST_SETS = 10_000;

export function createEngineMetrics(registry: MetricRegistry, store: Store): EngineMetrics {
  const requests = registry.counter({
    name: 'apiserver_request_total',
    help: 'Requests by verb, resource and HTTP code.',
    labels: ['verb', 'resource', 'code'],
    openLabels: ['resource'],
    maxLabelSets: MAX_REQUEST_SETS,
  });
  const durations = registry.histogram({
    name: 'apiserver_request_duration_seconds',
    help: 'Response time, excluding watches.',
    labels: ['verb'],
    bounds: BOUNDS,
  });
  const watches = registry.gauge({
    name: 'apiserver_longrunning_requests',
    help: 'Number of open watches.',
    labels: ['resource'],
    maxLabelSets: MAX_NAMED,
  });
  const webhooks = registry.counter({
    name: 'apiserver_admission_webhook_request_total',
    help: 'Calls of admission webhooks by outcome.',
    labels: ['type', 'name', 'outcome'],
    openLabels: ['name'],
    maxLabelSets: MAX_NAMED,
  });
  const webhookDurations = registry.histogram({
    name: 'apiserver_admission_webhook_admission_duration_seconds',
    help: 'Duration of admission webhook calls.',
    labels: ['type', 'name'],
    openLabels: ['name'],
    maxLabelSets: MAX_NAMED,
    bounds: BOUNDS,
  });
  const denials = registry.counter({
    name: 'apiserver_validating_admission_policy_check_total',
    help: 'Denials of ValidatingAdmissionPolicies by enforcement action.',
    labels: ['policy', 'policy_binding', 'enforcement_action'],
    openLabels: ['policy', 'policy_binding'],
    maxLabelSets: MAX_NAMED,
  });
  registry.gaugeFunc({ name: 'selfsame_store_revision', help: 'Newest durable revision.' }, () => store.revision);
  registry.gaugeFunc(
    { name: 'selfsame_store_compacted_revision', help: 'Oldest revision that watches can start from.' },
    () => store.compactedRevision,
  );
  registry.gaugeFunc({ name: 'selfsame_store_writable', help: 'Whether writes succeed (1) or not (0).' }, () =>
    store.fault === undefined ? 1 : 0,
  );
  return {
    recordRequest(verb, resource, code, seconds) {
      requests.add({ verb, resource, code: `${code}` });
      durations.observe({ verb }, seconds);
    },
    recordWatchStart: (resource) => watches.add({ resource }, 1),
    recordWatchEnd: (resource) => watches.add({ resource }, -1),
    recordWebhookCall(type, name, outcome, seconds) {
      webhooks.add({ type, name, outcome });
      webhookDurations.observe({ type, name }, seconds);
    },
    recordPolicyDenial: (policy, binding, action) =>
      denials.add({ policy, policy_binding: binding, enforcement_action: action }),
  };
}
