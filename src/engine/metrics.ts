/** What /metrics shows. Label sets are bounded: resources that are served, verbs, codes. */
import { Counter, Gauge, Histogram, Registry as MetricsRegistry } from 'prom-client';
import type { Store } from '#engine/store/store.ts';

export interface Metrics {
  requestDone(verb: string, resource: string, code: number, seconds: number): void;
  watchStarted(resource: string): void;
  watchEnded(resource: string): void;
  text(): Promise<string>;
  readonly contentType: string;
}

export function createMetrics(store: Store): Metrics {
  const registry = new MetricsRegistry();
  const registers = [registry];
  const requests = new Counter({
    name: 'apiserver_request_total',
    help: 'Requests by verb, resource and HTTP code.',
    labelNames: ['verb', 'resource', 'code'],
    registers,
  });
  const durations = new Histogram({
    name: 'apiserver_request_duration_seconds',
    help: 'Time until the answer was ready; watches are left out.',
    labelNames: ['verb'],
    buckets: [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10],
    registers,
  });
  const watches = new Gauge({
    name: 'apiserver_longrunning_requests',
    help: 'Watches that are open now.',
    labelNames: ['resource'],
    registers,
  });
  storeGauges(store, registers);

  // Label objects are hashed on each use; the few combinations that occur are resolved once.
  const requestCounters = memo((key: string) => requests.labels(...(key.split(' ') as [string, string, string])));
  const timers = memo((verb: string) => durations.labels(verb));
  return {
    requestDone(verb, resource, code, seconds) {
      requestCounters(`${verb} ${resource} ${code}`).inc();
      timers(verb).observe(seconds);
    },
    watchStarted: (resource) => watches.inc({ resource }),
    watchEnded: (resource) => watches.dec({ resource }),
    text: () => registry.metrics(),
    contentType: registry.contentType,
  };
}

function storeGauges(store: Store, registers: MetricsRegistry[]): void {
  const gauge = (name: string, help: string, read: () => number) =>
    new Gauge({
      name,
      help,
      registers,
      collect() {
        this.set(read());
      },
    });
  gauge('selfsame_store_revision', 'The newest durable revision.', () => store.revision);
  gauge('selfsame_store_compacted_revision', 'Watches from before it are gone.', () => store.compactedRevision);
  gauge('selfsame_store_writable', '1 while writes work.', () => (store.fault === undefined ? 1 : 0));
  gauge('process_resident_memory_bytes', 'Resident memory.', () => process.memoryUsage.rss());
}

function memo<T>(make: (key: string) => T): (key: string) => T {
  const known = new Map<string, T>();
  return (key) => {
    let value = known.get(key);
    if (value === undefined) known.set(key, (value = make(key)));
    return value;
  };
}
