/**
 * Splits a YAML text into the events of js-yaml. js-yaml insists that a closing bracket is indented more than its key;
 * Go's decoder does not, and many manifests have it in the column of the key. Such brackets are indented here, once the
 * text was refused because of them. The text is read at most three times.
 */
import { EVENT_ID, parseEvents, YAMLException, type Event } from 'js-yaml';

/** More than any object may have, and few enough for recursion. */
const MAX_LEVELS = 300;
/** Some reasons quote the text. */
const MAX_REASON = 200;

export interface YamlEvents {
  /** The text to which the offsets of the events refer. It has the same lines as the original text. */
  readonly source: string;
  readonly events: readonly Event[];
}

export function readYamlEvents(text: string): YamlEvents {
  try {
    return { source: text, events: parseEvents(text, { maxDepth: MAX_LEVELS }) };
  } catch (error) {
    if (!(error instanceof YAMLException)) throw error;
    if (error.reason !== 'deficient indentation') throw describeError(error);
    try {
      return readIndented(text, error);
    } catch (again) {
      throw again instanceof YAMLException ? describeError(again) : again;
    }
  }
}

/** Reads a text with more indentation before the closing brackets, except for brackets that are part of a scalar. */
function readIndented(text: string, refusal: YAMLException): YamlEvents {
  let offsets = Array.from(text.matchAll(/[\r\n] *(?=[\]}])/g), ({ index, 0: { length } }) => index + length);
  // The first pass finds the brackets in scalars; the second one has only the others.
  for (let pass = 0; pass < 2; pass++) {
    const source = insertSpaces(text, offsets);
    const events = parseEvents(source, { maxDepth: MAX_LEVELS });
    const outside = offsetsOutsideScalars(events, offsets);
    if (outside.length === offsets.length) return { source, events };
    offsets = outside;
  }
  throw refusal;
}

function insertSpaces(text: string, offsets: readonly number[]): string {
  const pieces = offsets.map((offset, index) => text.slice(offsets[index - 1] ?? 0, offset));
  return [...pieces, text.slice(offsets.at(-1) ?? 0)].join(' ');
}

function offsetsOutsideScalars(events: readonly Event[], offsets: readonly number[]): number[] {
  const scalars = events.filter((event) => event.type === EVENT_ID.SCALAR && event.valueStart >= 0);
  let next = 0;
  return offsets.filter((offset, inserted) => {
    const position = offset + inserted;
    for (; next < scalars.length; next++) {
      const scalar = scalars[next];
      if (scalar?.type === EVENT_ID.SCALAR && scalar.valueEnd > position) return scalar.valueStart > position;
    }
    return true;
  });
}

/** Leaves out the lines around the error, which js-yaml adds to the message. */
function describeError({ reason, mark }: YAMLException): Error {
  if (reason.startsWith('nesting exceeded')) return new Error(`exceeded max depth of ${MAX_LEVELS}`);
  const shown = reason.slice(0, MAX_REASON);
  return new Error(mark === undefined ? shown : `${shown} at line ${mark.line + 1}, column ${mark.column + 1}`);
}
