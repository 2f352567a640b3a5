/** Selects the requested lines of a container's log: the last ones, those after a time, with or without times. Pure. */
import { badRequest, type ApiError } from '#kube/api-error.ts';
import type { ContainerLogOptions } from '#node/endpoint/log-options.ts';

type Selection = Pick<ContainerLogOptions, 'tailLines' | 'sinceMs' | 'timestamps'>;

const NEWLINE = 0x0a;
const SPACE = 0x20;

/** Returns an error if times are requested of a log without times: ignoring them would be misleading. */
export function refuseUntimed(container: string, { sinceMs, timestamps }: Selection): ApiError | undefined {
  if (sinceMs === undefined && !timestamps) return undefined;
  const what = timestamps ? 'timestamps' : 'since';
  return badRequest(`Cannot serve the log of container "${container}" with ${what}: the log has no times`);
}

/** Selects lines of the existing log. An incomplete last line counts as a line. */
export function selectLines(bytes: Buffer, timed: boolean, { tailLines, sinceMs, timestamps }: Selection): Buffer {
  if (!timed) return tailLines === undefined ? bytes : lastLines(bytes, tailLines);
  let lines = splitLines(bytes);
  if (sinceMs !== undefined) lines = lines.filter((line) => lineTime(line) >= sinceMs);
  if (tailLines !== undefined) lines = lines.slice(Math.max(0, lines.length - tailLines));
  return Buffer.concat(timestamps ? lines : lines.map(removeTime));
}

/** Selects new output of a followed log. Emits whole lines only, because the time at their beginning is removed. */
export class LineStream {
  readonly #timestamps: boolean;
  #rest: Buffer = Buffer.alloc(0);

  constructor({ timestamps }: Pick<Selection, 'timestamps'>) {
    this.#timestamps = timestamps;
  }

  push(chunk: Buffer): Buffer {
    const lines = splitLines(Buffer.concat([this.#rest, chunk]));
    const last = lines.at(-1);
    const isIncomplete = last !== undefined && last.at(-1) !== NEWLINE;
    this.#rest = isIncomplete ? (lines.pop() as Buffer) : Buffer.alloc(0);
    return Buffer.concat(this.#timestamps ? lines : lines.map(removeTime));
  }
}

/** Returns the last `count` lines. Searches from the end, because the log may be long. */
function lastLines(bytes: Buffer, count: number): Buffer {
  if (count === 0) return Buffer.alloc(0);
  let at = bytes.length;
  if (bytes.at(-1) === NEWLINE) at--;
  for (let left = count; left > 0; left--) {
    at = at <= 0 ? -1 : bytes.lastIndexOf(NEWLINE, at - 1);
    if (at < 0) return bytes;
  }
  return bytes.subarray(at + 1);
}

/** Splits into lines, each with its newline. */
function splitLines(bytes: Buffer): Buffer[] {
  const lines: Buffer[] = [];
  for (let start = 0; start < bytes.length;) {
    const newline = bytes.indexOf(NEWLINE, start);
    const end = newline < 0 ? bytes.length : newline + 1;
    lines.push(bytes.subarray(start, end));
    start = end;
  }
  return lines;
}

function removeTime(line: Buffer): Buffer {
  return line.subarray(line.indexOf(SPACE) + 1);
}

/** Returns infinity for an invalid time, so that the line is not left out. */
function lineTime(line: Buffer): number {
  const ms = Date.parse(line.toString('latin1', 0, Math.max(0, line.indexOf(SPACE))));
  return Number.isNaN(ms) ? Number.POSITIVE_INFINITY : ms;
}
