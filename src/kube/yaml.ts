/**
 * Parses untrusted YAML 1.2 in time that grows linearly with its length. js-yaml splits the text into events; this module
 * makes values of them. It knows no timestamps, merge keys or binary values, and it bounds nesting, aliases and memory.
 */
import {
  boolCoreTag,
  EVENT_ID,
  floatCoreTag,
  getScalarValue,
  intCoreTag,
  NOT_RESOLVED,
  nullCoreTag,
  SCALAR_STYLE,
  type ScalarEvent,
} from 'js-yaml';
import { readYamlEvents, type YamlEvents } from '#kube/yaml-events.ts';

/** Limit of characters that may begin another value; js-yaml keeps up to two events of 112 bytes for each. */
const MAX_SEPARATORS = 500_000;
/** Limit of values that all aliases of a text expand to; a long text counts as several. */
const MAX_ALIASED = 10_000;
const CHARACTERS_PER_VALUE = 100;
/** Limit of the characters of an anchor in a message. */
const MAX_SHOWN = 100;

/** Options of parseYaml. */
interface YamlOptions {
  readonly onDuplicate?: OnDuplicateKey | undefined;
  readonly maxSeparators?: number;
}

/** Called for each key that its map already has, with the line of its value. */
type OnDuplicateKey = (key: unknown, line: number) => void;

/**
 * Returns the value of a text. Values of aliases are shared, not copied, so copy the result before changing it. The last
 * of duplicate keys wins. Throws errors with the messages of Go's decoder, or with those of js-yaml and their position.
 */
export function parseYaml(text: string, { onDuplicate, maxSeparators = MAX_SEPARATORS }: YamlOptions = {}): unknown {
  refuseManySeparators(text, maxSeparators);
  const read = readYamlEvents(text);
  // The only document begins with the first event.
  if (read.events.findLastIndex(({ type }) => type === EVENT_ID.DOCUMENT) > 0)
    throw new Error('source contains multiple documents');
  return buildValue(read, onDuplicate);
}

const SEPARATORS = new Uint8Array(128);
for (const separator of '\n\r,:[{-?') SEPARATORS[separator.charCodeAt(0)] = 1;

function refuseManySeparators(text: string, max: number): void {
  if (text.length <= max) return;
  let count = 0;
  for (let index = 0; index < text.length; index++) count += SEPARATORS[text.charCodeAt(index)] ?? 0;
  if (count > max) throw new Error(`more than ${max} line breaks and separators; send JSON instead`);
}

/** A value and the number of values in it, including those that aliases expand to. */
interface Sized {
  readonly value: unknown;
  readonly size: number;
}

/** A list or map whose end is not reached yet. */
interface Frame {
  readonly anchor: string | undefined;
  readonly start: number;
  readonly list: unknown[] | undefined;
  readonly map: Record<string, unknown>;
  /** The keys so far, if duplicates are reported. */
  readonly keys: Set<unknown> | undefined;
  key: { readonly value: unknown; readonly start: number } | undefined;
  size: number;
}

function buildValue({ source: text, events }: YamlEvents, onDuplicate: OnDuplicateKey | undefined): unknown {
  const anchored = new Map<string, Sized | 'open'>();
  const lineOf = lineFinder(text);
  const frames: Frame[] = [];
  let frame: Frame | undefined;
  let aliased = 0;
  let root: unknown = null;

  for (const event of events) {
    switch (event.type) {
      case EVENT_ID.SCALAR: {
        const value = scalarValue(text, event);
        const length = typeof value === 'string' ? value.length : 0;
        const sized = { value, size: 1 + Math.floor(length / CHARACTERS_PER_VALUE) };
        const anchor = anchorOf(event);
        if (anchor !== undefined) anchored.set(anchor, sized);
        add(sized, scalarStart(event));
        break;
      }
      case EVENT_ID.ALIAS:
        add(readAlias(text.slice(event.anchorStart, event.anchorEnd)), event.anchorStart);
        break;
      case EVENT_ID.SEQUENCE:
      case EVENT_ID.MAPPING:
        open(anchorOf(event), event.start, event.type === EVENT_ID.SEQUENCE);
        break;
      case EVENT_ID.POP:
        if (frame !== undefined) close(frame);
        break;
      case EVENT_ID.DOCUMENT:
        break;
    }
  }
  return root;

  function anchorOf({ anchorStart, anchorEnd }: { anchorStart: number; anchorEnd: number }): string | undefined {
    return anchorStart < 0 ? undefined : text.slice(anchorStart, anchorEnd);
  }

  function open(anchor: string | undefined, start: number, isList: boolean): void {
    if (anchor !== undefined) anchored.set(anchor, 'open');
    const keys = isList || onDuplicate === undefined ? undefined : new Set<unknown>();
    frame = { anchor, start, list: isList ? [] : undefined, map: {}, keys, key: undefined, size: 1 };
    frames.push(frame);
  }

  function close({ anchor, start, list, map, size }: Frame): void {
    frames.pop();
    frame = frames.at(-1);
    const sized = { value: list ?? map, size };
    if (anchor !== undefined) anchored.set(anchor, sized);
    add(sized, start);
  }

  function add({ value, size }: Sized, start: number): void {
    if (frame === undefined) {
      root = value;
    } else if (frame.list !== undefined) {
      frame.list.push(value);
      frame.size += size;
    } else if (frame.key === undefined) {
      frame.key = { value, start };
      frame.size += size - 1;
    } else {
      addField(frame, frame.key.value, value, start < 0 ? frame.key.start : start);
      frame.key = undefined;
      frame.size += size;
    }
  }

  function addField({ map, keys }: Frame, key: unknown, value: unknown, start: number): void {
    const name = keyText(key);
    // Removed, as from JSON.
    if (name !== '__proto__') map[name] = value;
    if (keys === undefined) return;
    // Go reports the line of the value, where it is set.
    if (keys.has(key)) onDuplicate?.(key, lineOf(start));
    keys.add(key);
  }

  function readAlias(anchor: string): Sized {
    const sized = anchored.get(anchor);
    if (sized === undefined) throw new Error(`unknown anchor '${anchor.slice(0, MAX_SHOWN)}' referenced`);
    if (sized === 'open') throw new Error(`anchor '${anchor.slice(0, MAX_SHOWN)}' value contains itself`);
    aliased += sized.size;
    if (aliased > MAX_ALIASED) throw new Error('document contains excessive aliasing');
    return sized;
  }
}

function keyText(key: unknown): string {
  if (typeof key === 'object' && key !== null) throw new Error('invalid map key: a map or a list');
  return key === null ? '' : `${key as string | number | boolean}`;
}

const IMPLICIT_TAGS = [nullCoreTag, boolCoreTag, intCoreTag, floatCoreTag];
/** The beginnings of plain scalars that may be something other than a string. */
const MAY_BE_TYPED = /^(?:$|[-+.~0-9nNtTfF])/;
const CORE_TAG = /^(?:!!|!<tag:yaml\.org,2002:)(null|bool|int|float)>?$/;

function scalarValue(text: string, event: ScalarEvent): unknown {
  const source = getScalarValue(text, event);
  if (event.tagStart >= 0) return taggedValue(source, text.slice(event.tagStart, event.tagEnd));
  if (event.style !== SCALAR_STYLE.PLAIN || !MAY_BE_TYPED.test(source)) return source;
  for (const tag of IMPLICIT_TAGS) {
    const value = tag.resolve(source, false, tag.tagName);
    if (value !== NOT_RESOLVED) return value;
  }
  return source;
}

/** Returns a string if the tag is unknown or does not fit, as for `!!binary`. */
function taggedValue(source: string, rawTag: string): unknown {
  const name = CORE_TAG.exec(rawTag)?.[1];
  const tag = IMPLICIT_TAGS.find(({ tagName }) => tagName === `tag:yaml.org,2002:${name}`);
  const value = tag === undefined ? NOT_RESOLVED : tag.resolve(source, true, tag.tagName);
  return value === NOT_RESOLVED ? source : value;
}

/** Returns the offset of a scalar with its quote or block header, or a negative number for an empty one. */
function scalarStart({ valueStart, style }: ScalarEvent): number {
  return style === SCALAR_STYLE.PLAIN ? valueStart : valueStart - 1;
}

/** Returns a function that returns the line of an offset, in logarithmic time after its first call. */
function lineFinder(text: string): (offset: number) => number {
  let ends: number[] | undefined;
  return (offset) => {
    ends ??= Array.from(text.matchAll(/\r\n?|\n/g), ({ index, 0: { length } }) => index + length);
    let low = 0;
    let high = ends.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((ends[middle] ?? 0) <= offset) low = middle + 1;
      else high = middle;
    }
    return low + 1;
  };
}
