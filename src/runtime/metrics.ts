/**
 * The metrics of controllers, in Prometheus' text format. Other components serve them, such as the engine's /metrics.
 * Families live as long as the process, and their size is bounded.
 */
import { invariant } from '#lib/invariant.ts';

export type MetricLabels = Readonly<Record<string, string>>;

export interface Counter {
  /** Increments the counter. Adding 0 shows it before anything was counted. */
  add(labels?: MetricLabels, by?: number): void;
}

interface Family {
  readonly type: 'counter' | 'gauge';
  readonly help: string;
  readonly counter: Counter;
  /** The values by formatted labels. */
  samples(): ReadonlyMap<string, number>;
}

const MAX_FAMILIES = 1000;
/** Limit of label sets per family. The others count as `other`. */
const MAX_LABEL_SETS = 100;
const OTHER = 'other';
const NAME = /^[a-zA-Z_][a-zA-Z0-9_]*$/;

const NO_COUNTER: Counter = { add: () => undefined };

export class MetricRegistry {
  readonly #families = new Map<string, Family>();

  /** Returns the counter with this name, or creates it. */
  counter(name: string, help: string): Counter {
    const known = this.#families.get(name);
    invariant(known === undefined || known.type === 'counter', `metric ${name} is a gauge already`);
    return known?.counter ?? this.#add(name, counterFamily(help)).counter;
  }

  /** Sets a gauge. `read` is called for each text and must be cheap. A later gauge with the same name replaces it. */
  gauge(name: string, help: string, read: () => number): void {
    const known = this.#families.get(name);
    invariant(known === undefined || known.type === 'gauge', `metric ${name} is a counter already`);
    this.#add(name, { type: 'gauge', help, counter: NO_COUNTER, samples: () => new Map([['', read()]]) });
  }

  text(): string {
    const lines = [...this.#families]
      .toSorted(byKey)
      .flatMap(([name, { type, help, samples }]) => [
        `# HELP ${name} ${escapeHelp(help)}`,
        `# TYPE ${name} ${type}`,
        ...[...samples()].toSorted(byKey).map(([labels, value]) => `${name}${labels} ${value}`),
      ]);
    return lines.map((line) => `${line}\n`).join('');
  }

  #add(name: string, family: Family): Family {
    invariant(NAME.test(name), `${name} is the name of a metric`);
    invariant(this.#families.has(name) || this.#families.size < MAX_FAMILIES, 'metrics are bounded');
    this.#families.set(name, family);
    return family;
  }
}

function counterFamily(help: string): Family {
  const counts = new Map<string, number>();
  const add = (labels: MetricLabels = {}, by = 1): void => {
    invariant(by >= 0, 'a counter never falls');
    const exact = formatLabels(labels);
    const fits = counts.has(exact) || counts.size < MAX_LABEL_SETS;
    const key = fits ? exact : formatLabels(Object.fromEntries(Object.keys(labels).map((label) => [label, OTHER])));
    counts.set(key, (counts.get(key) ?? 0) + by);
  };
  return { type: 'counter', help, counter: { add }, samples: () => counts };
}

function formatLabels(labels: MetricLabels): string {
  const pairs = Object.entries(labels).toSorted(byKey);
  for (const [label] of pairs) invariant(NAME.test(label), `${label} is the name of a label`);
  return pairs.length === 0 ? '' : `{${pairs.map(([label, value]) => `${label}="${escapeValue(value)}"`).join(',')}}`;
}

function escapeValue(value: string): string {
  return escapeHelp(value).replaceAll('"', '\\"');
}

function escapeHelp(text: string): string {
  return text.replaceAll('\\', '\\\\').replaceAll('\n', '\\n');
}

function byKey([a]: readonly [string, unknown], [b]: readonly [string, unknown]): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
