/**
 * The output of the tour. On a terminal: colours, and a line that is updated while a step runs (progress of the tour,
 * duration of the step, what it waits for). Otherwise one line before and one after each step.
 */
import { comparisonTable, type ComparisonRow } from '#cli/tour/comparison.ts';
import type { TourStep } from '#cli/tour/steps.ts';
import type { Clock } from '#lib/clock.ts';

const TICK_MS = 200;
const CLEAR_LINE = '\r\u001B[2K';
const DEFAULT_COLUMNS = 80;

export interface Screen {
  readonly isTTY?: boolean | undefined;
  readonly columns?: number | undefined;
  hasColors?(): boolean;
  write(text: string): unknown;
}

/** The result of one step. */
export interface TourStepResult {
  readonly step: Pick<TourStep, 'title'>;
  readonly rows: readonly ComparisonRow[];
  readonly problem?: string | undefined;
  readonly tookMs: number;
}

export class TourDisplay {
  readonly #screen: Screen;
  readonly #clock: Clock;
  #bar = '';
  #waitsFor = '';
  #ticking: NodeJS.Timeout | undefined;

  constructor(screen: Screen, clock: Clock) {
    this.#screen = screen;
    this.#clock = clock;
  }

  print(text: string): void {
    this.#screen.write(`${text}\n`);
  }

  /** Sets what the step currently waits for. */
  readonly waitsFor = (what: string): void => {
    this.#waitsFor = what;
  };

  /** Shows progress until the work is done, and then how long it took. */
  async showDuring<T>(what: string, work: () => Promise<T>): Promise<T> {
    const beganAt = this.#clock.elapsed();
    const seconds = () => `${((this.#clock.elapsed() - beganAt) / 1000).toFixed(0)} s`;
    // The progress of the tour is shown for steps only.
    const bar = this.#bar;
    this.#bar = '';
    this.#waitsFor = '';
    this.print(what);
    if (this.#screen.isTTY === true) this.#ticking = setInterval(() => this.#tick(`${bar}${seconds()}`), TICK_MS);
    try {
      const done = await work();
      this.#stopTicking();
      this.print(`    done after ${seconds()}`);
      return done;
    } finally {
      this.#stopTicking();
    }
  }

  #tick(progress: string): void {
    const waits = this.#waitsFor === '' ? '' : `, waiting for ${this.#waitsFor}`;
    const width = (this.#screen.columns ?? DEFAULT_COLUMNS) - 1;
    this.#screen.write(`${CLEAR_LINE}${`    ${progress}${waits}`.slice(0, width)}`);
  }

  /** Prints the title of a step, and returns the line with its command. */
  showStep(number: number, steps: number, { title, command }: Pick<TourStep, 'title' | 'command'>): string {
    this.#bar = `[${'='.repeat(number - 1)}>${'.'.repeat(steps - number)}] `;
    this.print(`\n[${number}/${steps}] ${title}`);
    return `    $ ${command}`;
  }

  showIdentity(view: ReadonlyMap<string, string>): void {
    this.print('    The identity of the VM, as the guest sees it:');
    const width = Math.max(...[...view.keys()].map(({ length }) => length));
    for (const [what, value] of view) this.print(`    ${what.padEnd(width)}  ${value}`);
  }

  showOutcome(rows: readonly ComparisonRow[], notes: readonly string[] = []): void {
    for (const line of notes) this.print(`    ${line}`);
    const { isTTY, columns } = this.#screen;
    const colours = isTTY === true && this.#screen.hasColors?.() === true;
    this.#screen.write(comparisonTable(rows, { columns: isTTY === true ? columns : undefined, colours }));
  }

  /** Prints a line for each step and the verdict. Returns whether it is the selfsame machine. */
  showVerdict(results: readonly TourStepResult[]): boolean {
    this.print('\nWhat changed for the guest in each step:');
    const width = Math.max(...results.map(({ step }) => step.title.length));
    for (const { step, rows, tookMs } of results) {
      const took = `${(tookMs / 1000).toFixed(0)} s`.padStart(5);
      this.print(`    ${step.title.padEnd(width)}  ${took}  ${changesText(rows)}`);
    }
    const wrong = results.flatMap(({ step, rows, problem }) => {
      const values = rows
        .filter(({ result }) => result === 'wrong')
        .map(({ what, before, after }) => `${what} was "${before}" and is "${after}"`);
      return [...values, ...(problem === undefined ? [] : [problem])].map((text) => `${step.title}: ${text}`);
    });
    this.print('');
    for (const line of wrong) this.print(line);
    this.print(
      wrong.length === 0
        ? `Verdict: after ${results.length} steps it is the selfsame machine; nothing changed except what was requested.`
        : `Verdict: it is NOT the selfsame machine; ${wrong.length} differences are listed above.`,
    );
    this.print('');
    return wrong.length === 0;
  }

  #stopTicking(): void {
    if (this.#ticking === undefined) return;
    clearInterval(this.#ticking);
    this.#ticking = undefined;
    this.#screen.write(CLEAR_LINE);
  }
}

function changesText(rows: readonly ComparisonRow[]): string {
  if (rows.length === 0) return 'a new machine';
  const changed = rows
    .filter(({ result }) => result !== 'same')
    .map(({ what, result }) => (result === 'wrong' ? `${what} (WRONG)` : what));
  return changed.length === 0 ? 'nothing' : changed.join(', ');
}
