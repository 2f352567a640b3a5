/**
 * What controllers count, in Prometheus' text format. Who serves it is others' business: the engine's /metrics on one
 * machine. Families live as long as the process, and what each can hold is bounded.
 */
import { invariant } from '#lib/invariant.ts';

export type Labels = Readonly<Record<string, string>>;

export interface Counter {
  /** 0 shows it before anything was counted. */
  add(labels?: Labels, by?: number): void;
}

interface Family {
  readonly type: 'counter' | 'gauge';
  readonly help: string;
  readonly counter: Counter;
  /** By labels as they are written. */
  samples(): ReadonlyMap<string, number>;
}

const MAX_FAMILIES = 1000;
/** In one family; what is counted beyond them counts as `other`. */
const MAX_LABEL_SETS = 100;
const OTHER = 'other';
const NAME = /^[a-zA-Z_][a-zA-Z0-9_]*$/;

const UNCOUNTED: Counter = { add: () => undefined };

export class Metrics {
  readonly #families = new Map<string, Family>();

  /** The same name gives the same counter. */
  counter(name: string, help: string): Counter {
    const known = this.#families.get(name);
    invariant(known === undefined || known.type === 'counter', `metric ${name} is a gauge already`);
    return known?.counter ?? this.#add(name, counterFamily(help)).counter;
  }

  /** `read` is asked each time that somebody looks, and costs little; the last one given under a name counts. */
  gauge(name: string, help: string, read: () => number): void {
    const known = this.#families.get(name);
    invariant(known === undefined || known.type === 'gauge', `metric ${name} is a counter already`);
    this.#add(name, { type: 'gauge', help, counter: UNCOUNTED, samples: () => new Map([['', read()]]) });
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
    invariant(NAME.test(name), `${name} is no name of a metric`);
    invariant(this.#families.has(name) || this.#families.size < MAX_FAMILIES, 'metrics are bounded');
    this.#families.set(name, family);
    return family;
  }
}

function counterFamily(help: string): Family {
  const counts = new Map<string, number>();
  const add = (labels: Labels = {}, by = 1): void => {
    invariant(by >= 0, 'a counter never falls');
    const exact = written(labels);
    const fits = counts.has(exact) || counts.size < MAX_LABEL_SETS;
    const key = fits ? exact : written(Object.fromEntries(Object.keys(labels).map((label) => [label, OTHER])));
    counts.set(key, (counts.get(key) ?? 0) + by);
  };
  return { type: 'counter', help, counter: { add }, samples: () => counts };
}

function written(labels: Labels): string {
  const pairs = Object.entries(labels).toSorted(byKey);
  for (const [label] of pairs) invariant(NAME.test(label), `${label} is no name of a label`);
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
