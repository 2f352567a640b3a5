/** A container's log as somebody asked for it: the last lines, from some time on, with or without times. Pure. */
import { badRequest, type ApiError } from '#kube/api-error.ts';
import type { LogOptions } from '#node/endpoint/log-options.ts';

type Selection = Pick<LogOptions, 'tailLines' | 'sinceMs' | 'timestamps'>;

const NEWLINE = 0x0a;
const SPACE = 0x20;

/** A log without times cannot tell when something was written; saying nothing would be a lie. */
export function untimedRefusal(container: string, { sinceMs, timestamps }: Selection): ApiError | undefined {
  if (sinceMs === undefined && !timestamps) return undefined;
  const what = timestamps ? 'timestamps' : 'since';
  return badRequest(`the log of container "${container}" has no times, so that ${what} cannot be served`);
}

/** What was written so far. A last line without its end counts as one. */
export function selectLines(bytes: Buffer, timed: boolean, { tailLines, sinceMs, timestamps }: Selection): Buffer {
  if (!timed) return tailLines === undefined ? bytes : lastLines(bytes, tailLines);
  let lines = linesOf(bytes);
  if (sinceMs !== undefined) lines = lines.filter((line) => timeOf(line) >= sinceMs);
  if (tailLines !== undefined) lines = lines.slice(Math.max(0, lines.length - tailLines));
  return Buffer.concat(timestamps ? lines : lines.map(withoutTime));
}

/** For what comes later: whole lines only, since a time is cut off at the beginning of each. */
export class LineStream {
  readonly #timestamps: boolean;
  #rest: Buffer = Buffer.alloc(0);

  constructor({ timestamps }: Pick<Selection, 'timestamps'>) {
    this.#timestamps = timestamps;
  }

  push(chunk: Buffer): Buffer {
    const lines = linesOf(Buffer.concat([this.#rest, chunk]));
    const last = lines.at(-1);
    const open = last !== undefined && last.at(-1) !== NEWLINE;
    this.#rest = open ? (lines.pop() as Buffer) : Buffer.alloc(0);
    return Buffer.concat(this.#timestamps ? lines : lines.map(withoutTime));
  }
}

/** The last `count` lines, found from the end: the log may be long. */
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

/** Each with its newline. */
function linesOf(bytes: Buffer): Buffer[] {
  const lines: Buffer[] = [];
  for (let start = 0; start < bytes.length;) {
    const newline = bytes.indexOf(NEWLINE, start);
    const end = newline < 0 ? bytes.length : newline + 1;
    lines.push(bytes.subarray(start, end));
    start = end;
  }
  return lines;
}

function withoutTime(line: Buffer): Buffer {
  return line.subarray(line.indexOf(SPACE) + 1);
}

/** A line whose time nobody can read is not left out. */
function timeOf(line: Buffer): number {
  const ms = Date.parse(line.toString('latin1', 0, Math.max(0, line.indexOf(SPACE))));
  return Number.isNaN(ms) ? Number.POSITIVE_INFINITY : ms;
}
