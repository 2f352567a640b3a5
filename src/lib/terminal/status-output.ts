/**
 * Lines about what a command does, and one live line below them that shows progress.
 *
 *   terminal   the live line is redrawn in place and keeps its last state; the cursor is hidden meanwhile
 *   otherwise  a line when the progress begins, one every few seconds, and one at the end
 */
import type { Clock } from '#lib/clock.ts';
import type { EnvironmentVariables } from '#lib/command-line/parse-args.ts';
import { createPainter, isLiveTerminal, type MaybeTerminal, type Painter } from '#lib/terminal/colour.ts';
import { cutToWidth, replaceControls, replaceControlsInLines } from '#lib/terminal/display-width.ts';

/** The time between two plain lines of the same progress. */
const PLAIN_INTERVAL_MS = 5000;
/** The time between two versions of the live line. */
const LIVE_INTERVAL_MS = 100;
const DEFAULT_COLUMNS = 80;

const CLEAR_LINE = '\r\u001b[2K';
const HIDE_CURSOR = '\u001b[?25l';
const SHOW_CURSOR = '\u001b[?25h';

export interface StatusStream extends MaybeTerminal {
  on?(event: 'resize', listener: () => void): unknown;
  off?(event: 'resize', listener: () => void): unknown;
}

export interface StatusOptions {
  readonly clock: Clock;
  readonly env: EnvironmentVariables;
  /** Calls `restore` if a signal ends the process. Returns a function that cancels this. */
  onInterrupt?(restore: () => void): () => void;
}

/** One state of the progress. */
export interface ProgressText {
  /** Printed at intervals if the stream is not a terminal; undefined if the state is of no interest there. */
  readonly plain: string | undefined;
  /** Returns the text for a terminal of this width, which is cut at the width; by default the plain one. */
  live?(columns: number): string;
  /** The plain line is printed at once, because the work has reached another phase. */
  readonly isNewPhase?: boolean;
}

/** Progress that is being shown. Only one is shown at a time. */
interface Progress {
  show(text: ProgressText): void;
  /** Ends the progress. The line stays; without a text, the last state on a terminal does. */
  end(line?: string): void;
}

export class StatusOutput {
  readonly clock: Clock;
  readonly #stream: StatusStream;
  readonly #options: StatusOptions;
  readonly #paint: Painter;
  #liveLine: LiveLine | undefined;

  constructor(stream: StatusStream, options: StatusOptions) {
    this.clock = options.clock;
    this.#stream = stream;
    this.#options = options;
    this.#paint = createPainter(stream, options.env);
  }

  /** Prints a line, above the live line if there is one. */
  readonly report = (line: string): void => {
    const text = replaceControlsInLines(line).replace(/^Warning:/, (word) => this.#paint('yellow', word));
    this.#liveLine?.clear();
    this.#stream.write(`${text}\n`);
    this.#liveLine?.draw();
  };

  /** Begins progress. `interrupted` is a line that is printed if a signal ends the process meanwhile. */
  begin({ interrupted }: { readonly interrupted?: string } = {}): Progress {
    if (!isLiveTerminal(this.#stream, this.#options.env)) {
      return new PlainLines(this.#stream, this.#options, interrupted);
    }
    const line = new LiveLine(this.#stream, this.#options, () => (this.#liveLine = undefined), interrupted);
    this.#liveLine = line;
    return line;
  }
}

const interruptedText = (line?: string) => (line === undefined ? '' : `${replaceControls(line)}\n`);

class PlainLines implements Progress {
  readonly #stream: StatusStream;
  readonly #clock: Clock;
  readonly #cancelInterrupt: (() => void) | undefined;
  #shown: string | undefined;
  #shownAtMs = Number.NEGATIVE_INFINITY;

  constructor(stream: StatusStream, { clock, onInterrupt }: StatusOptions, interrupted?: string) {
    this.#stream = stream;
    this.#clock = clock;
    if (interrupted !== undefined)
      this.#cancelInterrupt = onInterrupt?.(() => stream.write(interruptedText(interrupted)));
  }

  show({ plain, isNewPhase = false }: ProgressText): void {
    if (isNewPhase || this.#clock.elapsed() - this.#shownAtMs >= PLAIN_INTERVAL_MS) this.#print(plain);
  }

  end(line?: string): void {
    this.#cancelInterrupt?.();
    this.#print(line);
  }

  #print(line: string | undefined): void {
    if (line === undefined || line === this.#shown) return;
    this.#shown = line;
    this.#shownAtMs = this.#clock.elapsed();
    this.#stream.write(`${replaceControls(line)}\n`);
  }
}

class LiveLine implements Progress {
  readonly #stream: StatusStream;
  readonly #clock: Clock;
  readonly #ended: () => void;
  readonly #cancelInterrupt: (() => void) | undefined;
  #text: ProgressText | undefined;
  #drawnAtMs = Number.NEGATIVE_INFINITY;

  constructor(
    stream: StatusStream,
    { clock, onInterrupt }: StatusOptions,
    ended: () => void,
    interrupted: string | undefined,
  ) {
    this.#stream = stream;
    this.#clock = clock;
    this.#ended = ended;
    this.#cancelInterrupt = onInterrupt?.(() => this.#stream.write(`\n${interruptedText(interrupted)}${SHOW_CURSOR}`));
    stream.write(HIDE_CURSOR);
    stream.on?.('resize', this.draw);
  }

  show(text: ProgressText): void {
    this.#text = text;
    if (this.#clock.elapsed() - this.#drawnAtMs >= LIVE_INTERVAL_MS) this.draw();
  }

  readonly draw = (): void => {
    if (this.#text === undefined) return;
    this.#drawnAtMs = this.#clock.elapsed();
    const { plain = '', live = () => plain } = this.#text;
    // A line as wide as the terminal would wrap on some, and a wrapped line could not be overwritten.
    const columns = (this.#stream.columns || DEFAULT_COLUMNS) - 1;
    this.#stream.write(CLEAR_LINE + cutToWidth(replaceControls(live(columns)), columns));
  };

  clear(): void {
    this.#stream.write(CLEAR_LINE);
  }

  end(line?: string): void {
    this.#stream.off?.('resize', this.draw);
    this.#cancelInterrupt?.();
    this.#ended();
    if (line === undefined) this.draw();
    else this.#stream.write(CLEAR_LINE + replaceControls(line));
    this.#stream.write(`${this.#text === undefined && line === undefined ? '' : '\n'}${SHOW_CURSOR}`);
  }
}
