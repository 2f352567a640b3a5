/**
 * The metrics of /metrics in Prometheus' text format. Optimized for the hot path: a request costs two array increments.
 * Label sets are bounded: served resources, verbs, codes, and a limited number of webhook and policy names.
 */
import type { Store } from '#engine/store/store.ts';

export interface EngineMetrics {
  recordRequest(verb: string, resource: string, code: number, seconds: number): void;
  recordWatchStart(resource: string): void;
  recordWatchEnd(resource: string): void;
  recordWebhookCall(kind: string, name: string, outcome: string, seconds: number): void;
  /** Counts a denial of a policy by its action: deny, warn or audit. */
  recordPolicyDenial(policy: string, binding: string, action: string): void;
  text(): string;
  readonly contentType: string;
}

const BOUNDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

/**
 * Webhooks and policies come and go, but their counts stay: after this many label sets in one family, `other` is used.
 */
const MAX_NAMED = 1000;
const OTHER = 'other';

interface Histogram {
  /** One for each bound, and one for larger values. */
  readonly counts: number[];
  sum: number;
}

export function createMetrics(store: Store): EngineMetrics {
  const requests = new Map<string, number>();
  const durations = new Map<string, Histogram>();
  const watches = new Map<string, number>();
  const webhooks = new Map<string, number>();
  const webhookDurations = new Map<string, Histogram>();
  const denials = new Map<string, number>();
  const add = (counts: Map<string, number>, labels: string, by: number) =>
    counts.set(labels, (counts.get(labels) ?? 0) + by);
  const addNamed = (counts: Map<string, number>, labels: string, others: string) =>
    add(counts, within(counts, labels, others), 1);
  return {
    recordRequest(verb, resource, code, seconds) {
      add(requests, `verb="${verb}",resource="${resource}",code="${code}"`, 1);
      observe(durations, `verb="${verb}"`, seconds);
    },
    recordWatchStart: (resource) => void add(watches, `resource="${resource}"`, 1),
    recordWatchEnd: (resource) => void add(watches, `resource="${resource}"`, -1),
    recordWebhookCall(kind, name, outcome, seconds) {
      const [called, others] = [`type="${kind}",name="${name}"`, `type="${kind}",name="${OTHER}"`];
      addNamed(webhooks, `${called},outcome="${outcome}"`, `${others},outcome="${outcome}"`);
      observe(webhookDurations, within(webhookDurations, called, others), seconds);
    },
    recordPolicyDenial(policy, binding, action) {
      const done = `enforcement_action="${action}"`;
      const others = `policy="${OTHER}",policy_binding="${OTHER}",${done}`;
      addNamed(denials, `policy="${policy}",policy_binding="${binding}",${done}`, others);
    },
    text() {
      return [
        ...family('apiserver_request_total', 'counter', 'Requests by verb, resource and HTTP code.', requests),
        ...histogramLines('apiserver_request_duration_seconds', 'Response time, excluding watches.', durations),
        ...family('apiserver_longrunning_requests', 'gauge', 'Number of open watches.', watches),
        ...family(
          'apiserver_admission_webhook_request_total',
          'counter',
          'Calls of admission webhooks by outcome.',
          webhooks,
        ),
        ...histogramLines(
          'apiserver_admission_webhook_admission_duration_seconds',
          'Duration of admission webhook calls.',
          webhookDurations,
        ),
        ...family(
          'apiserver_validating_admission_policy_check_total',
          'counter',
          'Denials of ValidatingAdmissionPolicies by enforcement action.',
          denials,
        ),
        ...gauge('selfsame_store_revision', 'Newest durable revision.', store.revision),
        ...gauge(
          'selfsame_store_compacted_revision',
          'Oldest revision that watches can start from.',
          store.compactedRevision,
        ),
        ...gauge(
          'selfsame_store_writable',
          'Whether writes succeed (1) or not (0).',
          store.fault === undefined ? 1 : 0,
        ),
        ...gauge('process_resident_memory_bytes', 'Resident memory.', process.memoryUsage.rss()),
        '',
      ].join('\n');
    },
    contentType: 'text/plain; version=0.0.4; charset=utf-8',
  };
}

/** Returns the labels, or those of `other` if there are too many. */
function within(family: ReadonlyMap<string, unknown>, labels: string, others: string): string {
  return family.size < MAX_NAMED || family.has(labels) ? labels : others;
}

function observe(histograms: Map<string, Histogram>, labels: string, seconds: number): void {
  let histogram = histograms.get(labels);
  if (histogram === undefined) {
    histograms.set(labels, (histogram = { counts: Array.from({ length: BOUNDS.length + 1 }, () => 0), sum: 0 }));
  }
  let bucket = 0;
  while (bucket < BOUNDS.length && seconds > BOUNDS[bucket]!) bucket++;
  histogram.counts[bucket]!++;
  histogram.sum += seconds;
}

function head(name: string, type: string, help: string): string[] {
  return [`# HELP ${name} ${help}`, `# TYPE ${name} ${type}`];
}

function family(name: string, type: string, help: string, values: ReadonlyMap<string, number>): string[] {
  return [...head(name, type, help), ...[...values].map(([labels, value]) => `${name}{${labels}} ${value}`)];
}

function gauge(name: string, help: string, value: number): string[] {
  return [...head(name, 'gauge', help), `${name} ${value}`];
}

function histogramLines(name: string, help: string, histograms: ReadonlyMap<string, Histogram>): string[] {
  const lines = head(name, 'histogram', help);
  for (const [labels, { counts, sum }] of histograms) {
    let below = 0;
    for (const [i, count] of counts.entries()) {
      below += count;
      lines.push(`${name}_bucket{${labels},le="${BOUNDS[i] ?? '+Inf'}"} ${below}`);
    }
    lines.push(`${name}_sum{${labels}} ${sum}`, `${name}_count{${labels}} ${below}`);
  }
  return lines;
}
