/**
 * The output of the tour. On a terminal: colours, and a line that is updated while a step runs (progress of the tour,
 * duration of the step, what it waits for). Otherwise one line before and one after each step.
 */
import { comparisonTable, type ComparisonRow } from '#cli/tour/comparison.ts';
import type { TourStep } from '#cli/tour/steps.ts';
import type { Clock } from '#lib/clock.ts';
import { createPainter, type Painter } from '#lib/terminal/colour.ts';
import { StatusOutput, type StatusOptions, type StatusStream } from '#lib/terminal/status-output.ts';
import { alignedTable } from '#lib/terminal/table.ts';

const TICK_MS = 200;
const INDENT = '    ';

/** The result of one step. */
export interface TourStepResult {
  readonly step: Pick<TourStep, 'title'>;
  readonly rows: readonly ComparisonRow[];
  readonly problem?: string | undefined;
  readonly tookMs: number;
}

export class TourDisplay {
  readonly #screen: StatusStream;
  readonly #clock: Clock;
  readonly #status: StatusOutput;
  readonly #paint: Painter;
  #bar = '';
  #waitsFor = '';

  constructor(screen: StatusStream, options: StatusOptions) {
    this.#screen = screen;
    this.#clock = options.clock;
    this.#status = new StatusOutput(screen, options);
    this.#paint = createPainter(screen, options.env);
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
    const progress = this.#status.begin();
    const tick = () => {
      const waits = this.#waitsFor === '' ? '' : `, waiting for ${this.#waitsFor}`;
      progress.show({ plain: undefined, live: () => `${INDENT}${bar}${seconds()}${waits}` });
    };
    const ticking = setInterval(tick, TICK_MS);
    let result: string | undefined;
    try {
      const done = await work();
      result = `${INDENT}done after ${seconds()}`;
      return done;
    } finally {
      clearInterval(ticking);
      progress.end(result);
    }
  }

  /** Prints the title of a step, and returns the line with its command. */
  showStep(number: number, steps: number, { title, command }: Pick<TourStep, 'title' | 'command'>): string {
    this.#bar = `[${'='.repeat(number - 1)}>${'.'.repeat(steps - number)}] `;
    this.print(`\n[${number}/${steps}] ${title}`);
    return `    $ ${command}`;
  }

  showIdentity(view: ReadonlyMap<string, string>): void {
    this.print(`${INDENT}The identity of the VM, as the guest sees it:`);
    this.print(alignedTable([...view], { gap: 2, indent: INDENT }));
  }

  showOutcome(rows: readonly ComparisonRow[], notes: readonly string[] = []): void {
    for (const line of notes) this.print(`${INDENT}${line}`);
    const { isTTY, columns } = this.#screen;
    this.#screen.write(
      comparisonTable(rows, { columns: isTTY === true ? columns || undefined : undefined, paint: this.#paint }),
    );
  }

  /** Prints a line for each step and the verdict. Returns whether it is the selfsame machine. */
  showVerdict(results: readonly TourStepResult[]): boolean {
    this.print('\nWhat changed for the guest in each step:');
    const rows = results.map(({ step, rows: changes, tookMs }) => [
      step.title,
      `${(tookMs / 1000).toFixed(0)} s`.padStart(5),
      changesText(changes),
    ]);
    this.print(alignedTable(rows, { gap: 2, indent: INDENT }));
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
        ? this.#paint(
            'green',
            `Verdict: after ${results.length} steps it is the selfsame machine; nothing changed except what was requested.`,
          )
        : this.#paint('red', `Verdict: it is NOT the selfsame machine; ${wrong.length} differences are listed above.`),
    );
    this.print('');
    return wrong.length === 0;
  }
}

function changesText(rows: readonly ComparisonRow[]): string {
  if (rows.length === 0) return 'a new machine';
  const changed = rows
    .filter(({ result }) => result !== 'same')
    .map(({ what, result }) => (result === 'wrong' ? `${what} (WRONG)` : what));
  return changed.length === 0 ? 'nothing' : changed.join(', ');
}
