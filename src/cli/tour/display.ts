/** What the tour shows: a line that lives while a step runs, on a terminal; else one line before and one after. */
import { tableText, type Row } from '#cli/tour/comparison.ts';
import type { Step } from '#cli/tour/steps.ts';
import type { Clock } from '#lib/clock.ts';

const TICK_MS = 200;
const CLEAR_LINE = '\r\u001B[2K';

export interface Screen {
  readonly isTTY?: boolean | undefined;
  write(text: string): unknown;
}

export class TourDisplay {
  readonly #screen: Screen;
  readonly #clock: Clock;
  readonly #steps: number;
  #ticking: NodeJS.Timeout | undefined;

  constructor(screen: Screen, clock: Clock, steps: number) {
    this.#screen = screen;
    this.#clock = clock;
    this.#steps = steps;
  }

  say(text: string): void {
    this.#screen.write(`${text}\n`);
  }

  /** Shows that something goes on until the result is called, and how long it took. */
  async during<T>(what: string, work: () => Promise<T>): Promise<T> {
    const beganAt = this.#clock.elapsed();
    const seconds = () => `${((this.#clock.elapsed() - beganAt) / 1000).toFixed(0)} s`;
    const isLive = this.#screen.isTTY === true;
    if (isLive) {
      this.#ticking = setInterval(() => this.#screen.write(`${CLEAR_LINE}${what} ... ${seconds()}`), TICK_MS);
    } else this.say(`${what} ...`);
    try {
      const done = await work();
      this.#still();
      this.say(isLive ? `${what}: ${seconds()}` : `    done after ${seconds()}`);
      return done;
    } finally {
      this.#still();
    }
  }

  /** The same by hand: what is shown while it runs. */
  step(number: number, { title, command }: Step): string {
    this.say(`\n[${number}/${this.#steps}] ${title}`);
    return `    $ ${command}`;
  }

  card(view: ReadonlyMap<string, string>): void {
    this.say('    Its identity card, as the guest sees it:');
    const width = Math.max(...[...view.keys()].map(({ length }) => length));
    for (const [what, value] of view) this.say(`    ${what.padEnd(width)}  ${value}`);
  }

  outcome(rows: readonly Row[], said: readonly string[] = []): void {
    for (const line of said) this.say(`    ${line}`);
    this.#screen.write(tableText(rows));
  }

  #still(): void {
    if (this.#ticking === undefined) return;
    clearInterval(this.#ticking);
    this.#ticking = undefined;
    this.#screen.write(CLEAR_LINE);
  }
}
