/** Formats figures with their floors and bars as lines of text. Pure. */

export type Unit = 'perSecond' | 'bytesPerSecond' | 'ms' | 'seconds' | 'bytes';

export type Bar =
  /** The least share of the floor. */
  | { readonly ratioAtLeast: number }
  /** A limit in the unit of the figure. */
  | { readonly below: number }
  /** The allowed difference to the floor, in the unit of the figure. */
  | { readonly moreThanFloor: number };

export interface Row {
  readonly what: string;
  readonly unit: Unit;
  readonly engine: number;
  /** Absent if there is nothing to compare with. */
  readonly floor?: number;
  /** The median of the ratios if both were measured in pairs, which drift does not affect. Default: engine / floor. */
  readonly ratio?: number;
  readonly bar?: Bar | undefined;
  readonly p50Ms?: number;
  readonly p99Ms?: number;
  /** CPU time of the engine and of the floor per response or delivery: steadier than rates on a busy machine. */
  readonly cpuUs?: number;
  readonly floorCpuUs?: number;
  /** CPU usage of the engine and of the load generator, in cores. */
  readonly serverCores?: number;
  readonly clientCores?: number;
  readonly note?: string;
}

export type Verdict = 'PASS' | 'below' | '';

export function verdict(row: Row): Verdict {
  if (row.bar === undefined) return '';
  return meetsBar(row, row.bar) ? 'PASS' : 'below';
}

/** Reports whether the bar is met. Without a floor, no bar that refers to it is met. */
function meetsBar(row: Row, bar: Bar): boolean {
  const { engine, floor = Number.NaN } = row;
  if ('below' in bar) return engine < bar.below;
  if ('moreThanFloor' in bar) return engine - floor <= bar.moreThanFloor;
  return ratioOf(row) >= bar.ratioAtLeast;
}

function ratioOf({ engine, floor = Number.NaN, ratio }: Row): number {
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
  const latency = p50Ms === undefined || p99Ms === undefined ? '' : `${formatMs(p50Ms)} / ${formatMs(p99Ms)} ms`;
  const cells = [
    what,
    amount(engine, unit),
    floor === undefined ? '' : amount(floor, unit),
    floor === undefined ? '' : percent(ratioOf(row)),
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
  if ('below' in bar) return `< ${amount(bar.below, unit)}`;
  if ('moreThanFloor' in bar) return `<= +${amount(bar.moreThanFloor, unit)}`;
  return `>= ${percent(bar.ratioAtLeast)}`;
}

export function amount(value: number, unit: Unit): string {
  switch (unit) {
    case 'perSecond':
      return `${value < 100 ? value.toFixed(1) : Math.round(value).toLocaleString('en')} /s`;
    case 'bytesPerSecond':
      return `${(value / 1e6).toFixed(1)} MB/s`;
    case 'ms':
      return `${formatMs(value)} ms`;
    case 'seconds':
      return `${value.toFixed(2)} s`;
    case 'bytes':
      return `${Math.round(value / 1e6)} MB`;
  }
}

function formatMs(ms: number): string {
  return ms.toFixed(ms < 10 ? 2 : ms < 1000 ? 1 : 0);
}

export function percent(share: number): string {
  return `${Math.round(share * 100)} %`;
}
