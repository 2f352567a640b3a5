/**
 * The metrics of a process and their text in Prometheus' format. Components create their families in one registry, and
 * the server of /metrics prints it. Families live as long as the process.
 *
 * Counting costs one lookup. Label sets are formatted and escaped once, when they are first counted. Their number is
 * bounded: a label set beyond the limit of its family is counted as `other`.
 */
import { compareText } from '#lib/text/compare-text.ts';
import { invariant } from '#lib/invariant.ts';

interface MetricDescription<L extends string = never> {
  readonly name: string;
  readonly help: string;
  /** The names of the labels, in the order of the text. */
  readonly labels?: readonly L[];
  /** The number of label sets before `other` is used. */
  readonly maxLabelSets?: number;
  /** The labels whose values become `other` beyond that limit. Default: all. The other labels must be bounded. */
  readonly openLabels?: readonly L[];
}

type LabelValues<L extends string> = Readonly<Record<L, string>>;

interface Counter<L extends string = never> {
  /** Adding 0 shows the label set before anything was counted. */
  add(labels: LabelValues<L>, by?: number): void;
}

interface Gauge<L extends string = never> {
  /** Changes the value, which is 0 at first. */
  add(labels: LabelValues<L>, by: number): void;
}

export interface Histogram<L extends string = never> {
  observe(labels: LabelValues<L>, value: number): void;
}

interface HistogramDescription<L extends string = never> extends MetricDescription<L> {
  /** Upper bounds of the buckets, ascending, without infinity. */
  readonly bounds: readonly number[];
}

type MetricType = 'counter' | 'gauge' | 'histogram';

interface Family {
  readonly type: MetricType;
  readonly help: string;
  /** Counts; undefined if a function provides the value. */
  readonly instrument?: Counter<string> | Gauge<string> | Histogram<string>;
  lines(): string[];
}

/** The content type of the text. */
export const METRICS_CONTENT_TYPE = 'text/plain; version=0.0.4; charset=utf-8';

const MAX_FAMILIES = 1000;
const MAX_LABEL_SETS = 100;
const OTHER = 'other';
/** Separates values in keys. Values are names and words, which do not contain it. */
const SEPARATOR = '\0';
const METRIC_NAME = /^[a-zA-Z_:][a-zA-Z0-9_:]*$/;
const LABEL_NAME = /^[a-zA-Z_][a-zA-Z0-9_]*$/;

export class MetricRegistry {
  readonly #families = new Map<string, Family>();
  readonly #updates = new Set<() => void>();

  /** Returns the counter with this name, or creates it. */
  counter<L extends string = never>(description: MetricDescription<L>): Counter<L> {
    const existing = this.#existing('counter', description.name) as Counter<L> | undefined;
    return existing ?? this.#createSum('counter', description);
  }

  /** Returns the gauge with this name, or creates it. */
  gauge<L extends string = never>(description: MetricDescription<L>): Gauge<L> {
    const existing = this.#existing('gauge', description.name) as Gauge<L> | undefined;
    return existing ?? this.#createSum('gauge', description);
  }

  /** Returns the histogram with this name, or creates it. */
  histogram<L extends string = never>(description: HistogramDescription<L>): Histogram<L> {
    const existing = this.#existing('histogram', description.name) as Histogram<L> | undefined;
    if (existing !== undefined) return existing;
    const { name, help, bounds } = description;
    const sets = new LabelSets<L, Buckets>(description, (labels) => ({
      labels,
      counts: zeros(bounds.length + 1),
      sum: 0,
    }));
    const instrument: Histogram<L> = {
      observe(labels, value) {
        const buckets = sets.get(labels);
        let bucket = 0;
        while (bucket < bounds.length && value > bounds[bucket]!) bucket++;
        buckets.counts[bucket]!++;
        buckets.sum += value;
      },
    };
    const lines = () => sets.sorted().flatMap((buckets) => bucketLines(name, bounds, buckets));
    this.#add(name, { type: 'histogram', help, instrument, lines });
    return instrument;
  }

  /** Adds a counter that `read` returns for each text. A later one with the same name replaces it. */
  counterFunc(description: MetricDescription, read: () => number): void {
    this.#addFunc('counter', description, read);
  }

  /** Adds a gauge that `read` returns for each text. A later one with the same name replaces it. */
  gaugeFunc(description: MetricDescription, read: () => number): void {
    this.#addFunc('gauge', description, read);
  }

  /** Calls `update` before each text, for values that are read together. Returns a function that ends this. */
  onText(update: () => void): () => void {
    this.#updates.add(update);
    return () => void this.#updates.delete(update);
  }

  text(): string {
    for (const update of this.#updates) update();
    const lines = [...this.#families]
      .toSorted(([a], [b]) => compareText(a, b))
      .flatMap(([name, family]) => [
        `# HELP ${name} ${escapeHelp(family.help)}`,
        `# TYPE ${name} ${family.type}`,
        ...family.lines(),
      ]);
    return lines.map((line) => `${line}\n`).join('');
  }

  #createSum<L extends string>(type: 'counter' | 'gauge', description: MetricDescription<L>): Counter<L> & Gauge<L> {
    const { name, help } = description;
    const sets = new LabelSets<L, Sum>(description, (labels) => ({ labels, value: 0 }));
    const instrument = {
      add(labels: LabelValues<L>, by = 1) {
        invariant(type === 'gauge' || by >= 0, 'a counter never falls');
        sets.get(labels).value += by;
      },
    };
    const lines = () => sets.sorted().map(({ labels, value }) => `${name}${braced(labels)} ${value}`);
    this.#add(name, { type, help, instrument, lines });
    return instrument;
  }

  #addFunc(type: 'counter' | 'gauge', { name, help }: MetricDescription, read: () => number): void {
    const known = this.#families.get(name);
    invariant(known === undefined || known.type === type, `metric ${name} is a ${known?.type} already`);
    invariant(known?.instrument === undefined, `metric ${name} is counted already`);
    this.#add(name, { type, help, lines: () => [`${name} ${read()}`] });
  }

  /** The caller states the labels again; the same name always has the same ones. */
  #existing(type: MetricType, name: string): Family['instrument'] {
    const known = this.#families.get(name);
    if (known === undefined) return undefined;
    invariant(known.type === type, `metric ${name} is a ${known.type} already`);
    invariant(known.instrument !== undefined, `metric ${name} is provided by a function already`);
    return known.instrument;
  }

  #add(name: string, family: Family): void {
    invariant(METRIC_NAME.test(name), `${name} is the name of a metric`);
    invariant(this.#families.has(name) || this.#families.size < MAX_FAMILIES, 'metrics are bounded');
    this.#families.set(name, family);
  }
}

interface Sum {
  /** Formatted, without braces. */
  readonly labels: string;
  value: number;
}

interface Buckets {
  readonly labels: string;
  /** One for each bound, and one for larger values. */
  readonly counts: number[];
  sum: number;
}

/** The samples of a family by their label values. */
class LabelSets<L extends string, S extends { readonly labels: string }> {
  readonly #names: readonly L[];
  readonly #open: readonly L[];
  readonly #max: number;
  readonly #create: (labels: string) => S;
  readonly #samples = new Map<string, S>();

  constructor(description: MetricDescription<L>, create: (labels: string) => S) {
    const { labels = [], openLabels = labels, maxLabelSets = MAX_LABEL_SETS } = description;
    for (const label of labels) invariant(LABEL_NAME.test(label), `${label} is the name of a label`);
    this.#names = labels;
    this.#open = openLabels;
    this.#max = maxLabelSets;
    this.#create = create;
  }

  get(labels: LabelValues<L>): S {
    return this.#samples.get(this.#keyOf(labels)) ?? this.#add(labels);
  }

  sorted(): S[] {
    return [...this.#samples.values()].toSorted((a, b) => compareText(a.labels, b.labels));
  }

  #keyOf(labels: LabelValues<L>): string {
    const names = this.#names;
    if (names.length === 0) return '';
    let key: string = labels[names[0]!];
    for (let i = 1; i < names.length; i++) key += SEPARATOR + labels[names[i]!];
    return key;
  }

  #add(labels: LabelValues<L>): S {
    if (this.#samples.size >= this.#max && this.#open.some((name) => labels[name] !== OTHER)) {
      return this.get({ ...labels, ...Object.fromEntries(this.#open.map((name) => [name, OTHER])) });
    }
    const sample = this.#create(this.#names.map((name) => `${name}="${escapeValue(labels[name])}"`).join(','));
    this.#samples.set(this.#keyOf(labels), sample);
    return sample;
  }
}

function bucketLines(name: string, bounds: readonly number[], { labels, counts, sum }: Buckets): string[] {
  const before = labels === '' ? '' : `${labels},`;
  let below = 0;
  const buckets = counts.map((count, i) => {
    below += count;
    return `${name}_bucket{${before}le="${bounds[i] ?? '+Inf'}"} ${below}`;
  });
  return [...buckets, `${name}_sum${braced(labels)} ${sum}`, `${name}_count${braced(labels)} ${below}`];
}

const braced = (labels: string) => (labels === '' ? '' : `{${labels}}`);

const zeros = (length: number): number[] => Array.from({ length }, () => 0);

function escapeValue(value: string): string {
  return escapeHelp(value).replaceAll('"', '\\"');
}

function escapeHelp(text: string): string {
  return text.replaceAll('\\', '\\\\').replaceAll('\n', '\\n');
}
