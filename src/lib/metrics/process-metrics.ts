/**
 * The metrics of the process itself, under the names that Prometheus' clients use: CPU, memory, file descriptors, the
 * event loop and garbage collections. The lag of the event loop is that since the previous text.
 */
import { readdirSync, readFileSync } from 'node:fs';
import {
  constants,
  monitorEventLoopDelay,
  performance,
  PerformanceObserver,
  type NodeGCPerformanceDetail,
} from 'node:perf_hooks';
import type { Histogram, MetricRegistry } from '#lib/metrics/metric-registry.ts';

/** Each measurement wakes the process, so it is not more frequent. */
const LAG_RESOLUTION_MS = 20;
const NANOSECONDS = 1e9;

const GC_BOUNDS = [0.001, 0.01, 0.1, 1, 2, 5];
const GC_KINDS = new Map<number, string>([
  [constants.NODE_PERFORMANCE_GC_MINOR, 'minor'],
  [constants.NODE_PERFORMANCE_GC_MAJOR, 'major'],
  [constants.NODE_PERFORMANCE_GC_INCREMENTAL, 'incremental'],
  [constants.NODE_PERFORMANCE_GC_WEAKCB, 'weakcb'],
]);

interface Gauges {
  readonly cpuSeconds: number;
  readonly memory: NodeJS.MemoryUsage;
  readonly openFds: number;
  readonly maxFds: number;
  readonly lag: Lag;
}

interface Lag {
  readonly mean: number;
  readonly max: number;
  readonly p50: number;
  readonly p90: number;
  readonly p99: number;
}

/** Adds the metrics to the registry. Returns a function that ends the measurements. */
export function startProcessMetrics(registry: MetricRegistry): () => void {
  const delays = monitorEventLoopDelay({ resolution: LAG_RESOLUTION_MS });
  delays.enable();
  let values: Gauges | undefined;
  const read = (): Gauges => (values ??= readValues(delays));
  const endUpdates = registry.onText(() => {
    values = readValues(delays);
    delays.reset();
  });
  const counter = (name: string, help: string, value: (read: Gauges) => number) =>
    registry.counterFunc({ name, help }, () => value(read()));
  const gauge = (name: string, help: string, value: (read: Gauges) => number) =>
    registry.gaugeFunc({ name, help }, () => value(read()));

  counter('process_cpu_seconds_total', 'User and system CPU time in seconds.', ({ cpuSeconds }) => cpuSeconds);
  gauge('process_resident_memory_bytes', 'Resident memory in bytes.', ({ memory }) => memory.rss);
  gauge('process_open_fds', 'Number of open file descriptors.', ({ openFds }) => openFds);
  gauge('process_max_fds', 'Limit of open file descriptors.', ({ maxFds }) => maxFds);
  const startSeconds = performance.timeOrigin / 1000;
  gauge('process_start_time_seconds', 'Start of the process in seconds since 1970.', () => startSeconds);
  gauge('nodejs_heap_size_total_bytes', 'Size of the heap in bytes.', ({ memory }) => memory.heapTotal);
  gauge('nodejs_heap_size_used_bytes', 'Used part of the heap in bytes.', ({ memory }) => memory.heapUsed);
  gauge(
    'nodejs_external_memory_bytes',
    'Memory of buffers outside of the heap in bytes.',
    ({ memory }) => memory.external,
  );
  gauge('nodejs_eventloop_lag_seconds', 'Mean lag of the event loop.', ({ lag }) => lag.mean);
  gauge('nodejs_eventloop_lag_max_seconds', 'Largest lag of the event loop.', ({ lag }) => lag.max);
  gauge('nodejs_eventloop_lag_p50_seconds', 'Median of the lag of the event loop.', ({ lag }) => lag.p50);
  gauge('nodejs_eventloop_lag_p90_seconds', '90th percentile of the lag of the event loop.', ({ lag }) => lag.p90);
  gauge('nodejs_eventloop_lag_p99_seconds', '99th percentile of the lag of the event loop.', ({ lag }) => lag.p99);
  const endGc = observeGc(
    registry.histogram({
      name: 'nodejs_gc_duration_seconds',
      help: 'Duration of garbage collections by kind.',
      labels: ['kind'],
      bounds: GC_BOUNDS,
    }),
  );
  return () => {
    endUpdates();
    endGc();
    delays.disable();
  };
}

function readValues(delays: ReturnType<typeof monitorEventLoopDelay>): Gauges {
  const { user, system } = process.cpuUsage();
  // The histogram has the time between two measurements, which includes the wait for the timer.
  const lag = (nanoseconds: number) => Math.max(0, (nanoseconds || 0) / NANOSECONDS - LAG_RESOLUTION_MS / 1000);
  const isEmpty = delays.count === 0;
  return {
    cpuSeconds: (user + system) / 1e6,
    memory: process.memoryUsage(),
    openFds: countOpenFds(),
    maxFds: parseMaxFds(readText('/proc/self/limits')),
    lag: {
      mean: lag(delays.mean),
      max: isEmpty ? 0 : lag(delays.max),
      p50: lag(delays.percentile(50)),
      p90: lag(delays.percentile(90)),
      p99: lag(delays.percentile(99)),
    },
  };
}

/** Returns the number without the descriptor that reads the directory. */
function countOpenFds(): number {
  try {
    return readdirSync('/proc/self/fd').length - 1;
  } catch {
    return 0;
  }
}

/** Returns 0 if it is unknown or there is no limit, as Prometheus' clients do. */
function parseMaxFds(limits: string): number {
  return Number(/^Max open files\s+(\d+)/m.exec(limits)?.[1] ?? 0);
}

function readText(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return '';
  }
}

function observeGc(durations: Histogram<'kind'>): () => void {
  const observer = new PerformanceObserver((list) => {
    for (const entry of list.getEntries()) {
      const { detail, duration } = entry as typeof entry & { readonly detail: NodeGCPerformanceDetail };
      durations.observe({ kind: GC_KINDS.get(detail.kind) ?? 'other' }, duration / 1000);
    }
  });
  observer.observe({ entryTypes: ['gc'] });
  return () => observer.disconnect();
}
