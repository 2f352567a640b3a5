/** Figures beside their floors and bars, as lines of text. Pure. */

export type Unit = 'perSecond' | 'ms' | 'seconds' | 'bytes';

export type Bar =
  /** A share of the floor. */
  | { readonly ratioAtLeast: number }
  /** In the unit of the figure. */
  | { readonly below: number };

export interface Row {
  readonly what: string;
  readonly unit: Unit;
  readonly engine: number;
  readonly floor: number;
  /** Where both were measured in pairs: the median of the pairs, which drift cannot reach. Else engine over floor. */
  readonly ratio?: number;
  readonly bar?: Bar | undefined;
  readonly p50Ms?: number;
  readonly p99Ms?: number;
  /** CPU time of the engine and of the floor for one answer or delivery: steadier than rates on a busy machine. */
  readonly cpuUs?: number;
  readonly floorCpuUs?: number;
  /** Cores that the engine and the load generator used. */
  readonly serverCores?: number;
  readonly clientCores?: number;
  readonly note?: string;
}

export type Verdict = 'PASS' | 'below' | '';

export function verdict(row: Row): Verdict {
  const { engine, bar } = row;
  if (bar === undefined) return '';
  const passed = 'below' in bar ? engine < bar.below : ratioOf(row) >= bar.ratioAtLeast;
  return passed ? 'PASS' : 'below';
}

function ratioOf({ engine, floor, ratio }: Row): number {
  return ratio ?? engine / floor;
}

const COLUMNS = [
  'measure',
  'engine',
  'floor',
  'ratio',
  'bar',
  '',
  'p50 / p99',
  'CPU / floor',
  'cores',
  'client',
] as const;
const WIDTHS = [33, 12, 12, 8, 11, 6, 16, 14, 6, 7] as const;

export function heading(): string {
  return `${line(COLUMNS)}\n${'-'.repeat(WIDTHS.reduce((sum, width) => sum + width + 1, 0))}`;
}

export function rowText(row: Row): string {
  const { what, unit, engine, floor, bar, p50Ms, p99Ms, cpuUs, floorCpuUs, note } = row;
  const latency = p50Ms === undefined || p99Ms === undefined ? '' : `${short(p50Ms)} / ${short(p99Ms)} ms`;
  const cells = [
    what,
    amount(engine, unit),
    amount(floor, unit),
    percent(ratioOf(row)),
    bar === undefined ? '' : barText(bar, unit),
    verdict(row),
    latency,
    cpuUs === undefined || floorCpuUs === undefined ? '' : `${cpuUs.toFixed(0)} / ${floorCpuUs.toFixed(0)} us`,
    row.serverCores?.toFixed(2) ?? '',
    row.clientCores?.toFixed(2) ?? '',
  ];
  return `${line(cells)}  ${note ?? ''}`.trimEnd();
}

function line(cells: readonly string[]): string {
  const [first, ...rest] = cells;
  return `${first!.padEnd(WIDTHS[0])} ${rest.map((cell, at) => cell.padStart(WIDTHS[at + 1]!)).join(' ')}`;
}

function barText(bar: Bar, unit: Unit): string {
  return 'below' in bar ? `< ${amount(bar.below, unit)}` : `>= ${percent(bar.ratioAtLeast)}`;
}

export function amount(value: number, unit: Unit): string {
  switch (unit) {
    case 'perSecond':
      return `${value < 100 ? value.toFixed(1) : Math.round(value).toLocaleString('en')} /s`;
    case 'ms':
      return `${short(value)} ms`;
    case 'seconds':
      return `${value.toFixed(2)} s`;
    case 'bytes':
      return `${Math.round(value / 1e6)} MB`;
  }
}

function short(ms: number): string {
  return ms < 10 ? ms.toFixed(2) : ms.toFixed(1);
}

export function percent(share: number): string {
  return `${Math.round(share * 100)} %`;
}
