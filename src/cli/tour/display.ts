/**
 * What the tour shows. On a terminal: a line that lives while a step runs (how far the tour is, how long the step takes,
 * what it waits for) and colours. Else one line before and one after.
 */
import { tableText, type Row } from '#cli/tour/comparison.ts';
import type { Step } from '#cli/tour/steps.ts';
import type { Clock } from '#lib/clock.ts';

const TICK_MS = 200;
const CLEAR_LINE = '\r\u001B[2K';
const NARROW = 80;

export interface Screen {
  readonly isTTY?: boolean | undefined;
  readonly columns?: number | undefined;
  hasColors?(): boolean;
  write(text: string): unknown;
}

/** What came of one step. */
export interface Walked {
  readonly step: Pick<Step, 'title'>;
  readonly rows: readonly Row[];
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

  say(text: string): void {
    this.#screen.write(`${text}\n`);
  }

  /** What is waited for just now. */
  readonly waitsFor = (what: string): void => {
    this.#waitsFor = what;
  };

  /** Shows that something goes on until the work is done, and how long it took. */
  async during<T>(what: string, work: () => Promise<T>): Promise<T> {
    const beganAt = this.#clock.elapsed();
    const seconds = () => `${((this.#clock.elapsed() - beganAt) / 1000).toFixed(0)} s`;
    // How far the tour is, is told of its steps only.
    const bar = this.#bar;
    this.#bar = '';
    this.#waitsFor = '';
    this.say(what);
    if (this.#screen.isTTY === true) this.#ticking = setInterval(() => this.#tick(`${bar}${seconds()}`), TICK_MS);
    try {
      const done = await work();
      this.#still();
      this.say(`    done after ${seconds()}`);
      return done;
    } finally {
      this.#still();
    }
  }

  #tick(progress: string): void {
    const waits = this.#waitsFor === '' ? '' : `, waiting for ${this.#waitsFor}`;
    const width = (this.#screen.columns ?? NARROW) - 1;
    this.#screen.write(`${CLEAR_LINE}${`    ${progress}${waits}`.slice(0, width)}`);
  }

  /** The same by hand: what is shown while it runs. */
  step(number: number, steps: number, { title, command }: Pick<Step, 'title' | 'command'>): string {
    this.#bar = `[${'='.repeat(number - 1)}>${'.'.repeat(steps - number)}] `;
    this.say(`\n[${number}/${steps}] ${title}`);
    return `    $ ${command}`;
  }

  card(view: ReadonlyMap<string, string>): void {
    this.say('    The identity of the VM, as the guest sees it:');
    const width = Math.max(...[...view.keys()].map(({ length }) => length));
    for (const [what, value] of view) this.say(`    ${what.padEnd(width)}  ${value}`);
  }

  outcome(rows: readonly Row[], said: readonly string[] = []): void {
    for (const line of said) this.say(`    ${line}`);
    const { isTTY, columns } = this.#screen;
    const colours = isTTY === true && this.#screen.hasColors?.() === true;
    this.#screen.write(tableText(rows, { columns: isTTY === true ? columns : undefined, colours }));
  }

  /** One line for each step, and the verdict: whether it is the selfsame machine. */
  verdict(walked: readonly Walked[]): boolean {
    this.say('\nWhat changed for the guest in each step:');
    const width = Math.max(...walked.map(({ step }) => step.title.length));
    for (const { step, rows, tookMs } of walked) {
      const took = `${(tookMs / 1000).toFixed(0)} s`.padStart(5);
      this.say(`    ${step.title.padEnd(width)}  ${took}  ${changesOf(rows)}`);
    }
    const wrong = walked.flatMap(({ step, rows, problem }) => {
      const values = rows
        .filter(({ is }) => is === 'WRONG')
        .map(({ what, before, after }) => `${what} was "${before}" and is "${after}"`);
      return [...values, ...(problem === undefined ? [] : [problem])].map((text) => `${step.title}: ${text}`);
    });
    this.say('');
    for (const line of wrong) this.say(line);
    this.say(
      wrong.length === 0
        ? `Verdict: after ${walked.length} steps it is the selfsame machine; nothing changed except what was requested.`
        : `Verdict: it is NOT the selfsame machine; ${wrong.length} differences are listed above.`,
    );
    this.say('');
    return wrong.length === 0;
  }

  #still(): void {
    if (this.#ticking === undefined) return;
    clearInterval(this.#ticking);
    this.#ticking = undefined;
    this.#screen.write(CLEAR_LINE);
  }
}

function changesOf(rows: readonly Row[]): string {
  if (rows.length === 0) return 'a new machine';
  const changed = rows
    .filter(({ is }) => is !== 'same')
    .map(({ what, is }) => (is === 'WRONG' ? `${what} (WRONG)` : what));
  return changed.length === 0 ? 'nothing' : changed.join(', ');
}
