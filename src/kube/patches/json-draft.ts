/**
 * A JSON document that JSON Patch edits by pointer. The original document and all inserted values stay unchanged: the
 * draft copies a container when it first writes to it and owns the copy from then on, so that many edits cost about as
 * much as one copy. Work, depth and copied bytes are bounded.
 *
 * json-patch.ts adds the operation to the error texts.
 */
import { deepClone } from '#kube/deep.ts';
import { parsePointer } from '#kube/patches/json-pointer.ts';

/** An edit is not possible. The message is that of evanphx/json-patch. */
export class DraftError extends Error {
  override name = 'DraftError';
}

const MAX_COPIED_BYTES = 3 * 1024 * 1024;
const MAX_DEPTH = 500;
/** Limit of array elements moved by all edits: more than a reasonable patch needs, yet done in well under a second. */
const MAX_WORK = 50_000_000;

type Container = Record<string, unknown> | unknown[];

/** The target of an operation: a key of the container that the pointer leads to, or the document itself. */
type DraftLocation = { readonly container: Container; readonly key: string } | 'root';

export class JsonDraft {
  #root: unknown;
  /** The containers created by this draft, the only ones that may be written to. */
  readonly #owned = new Set<object>();
  #copiedBytes = 0;
  #work = 0;
  /** Upper bound of the levels of nesting that edits may have added. */
  #levels = 0;

  constructor(document: unknown) {
    this.#root = document;
  }

  finish(): unknown {
    if (this.#levels > MAX_DEPTH) checkDepth(this.#root, 0);
    return this.#root;
  }

  /**
   * Returns the location that a pointer names, or undefined if its parent does not exist. For writing, the draft takes
   * ownership of each container on the way. A location is valid until the next edit.
   */
  find(pointer: string, purpose: 'read' | 'write'): DraftLocation | undefined {
    const tokens = parsePointer(pointer);
    if (tokens === undefined || tokens.includes('__proto__')) return undefined;
    const key = tokens.pop();
    if (key === undefined) return 'root';
    this.#levels += tokens.length + 1;

    if (!isContainer(this.#root)) return undefined;
    if (purpose === 'write') this.#root = this.#takeOwnership(this.#root);
    let container = this.#root as Container;
    for (const token of tokens) {
      const property = childProperty(container, token);
      if (property === undefined) return undefined;
      let child = (container as Record<string, unknown>)[property];
      if (!isContainer(child)) return undefined;
      if (purpose === 'write') (container as Record<string, unknown>)[property] = child = this.#takeOwnership(child);
      container = child as Container;
    }
    return { container, key };
  }

  /** Returns the value, or undefined for an absent key of an object. Throws for an index outside of its array. */
  read(location: DraftLocation): unknown {
    if (location === 'root') return this.#root;
    const { container, key } = location;
    if (Array.isArray(container)) return container[existingIndex(container, key)];
    return Object.hasOwn(container, key) ? container[key] : undefined;
  }

  /** Sets a key, or inserts a value into an array before the index. */
  insert(location: DraftLocation, value: unknown): void {
    if (location === 'root') {
      this.#root = value;
      return;
    }
    const { container, key } = location;
    if (!Array.isArray(container)) {
      container[key] = value;
      return;
    }
    if (key === '-') {
      container.push(value);
      return;
    }
    const number = parseIndex(key);
    if (number === undefined)
      throw new DraftError(`value was not a proper array index: '${key}': ${notANumberText(key)}`);
    const index = number < 0 ? number + container.length + 1 : number;
    if (index < 0 || index > container.length) throw invalidIndexError(key);
    this.#countWork(container.length - index);
    container.splice(index, 0, value);
  }

  /** Replaces an existing value. */
  replace(location: DraftLocation, value: unknown): void {
    if (location === 'root') this.#root = value;
    else if (Array.isArray(location.container))
      location.container[existingIndex(location.container, location.key)] = value;
    else location.container[location.key] = value;
  }

  /** Removes and returns the value. */
  remove({ container, key }: Exclude<DraftLocation, 'root'>): unknown {
    if (Array.isArray(container)) {
      const index = existingIndex(container, key);
      this.#countWork(container.length - index);
      return container.splice(index, 1)[0];
    }
    if (!Object.hasOwn(container, key)) {
      throw new DraftError(`Unable to remove nonexistent key: ${key}: missing value`);
    }
    const value = container[key];
    delete container[key];
    return value;
  }

  /** Returns a deep copy. The total size of all copies of a draft is limited. */
  duplicate(value: unknown): unknown {
    this.#copiedBytes += jsonSize(value, 0);
    if (this.#copiedBytes > MAX_COPIED_BYTES) {
      const sizes = `${this.#copiedBytes}, exceeding the limit ${MAX_COPIED_BYTES}`;
      throw new DraftError(`Unable to complete the copy, the accumulated size increase of copy is ${sizes}`);
    }
    return deepClone(value);
  }

  #takeOwnership(container: Container): Container {
    if (this.#owned.has(container)) return container;
    const copy = Array.isArray(container) ? container.slice() : { ...container };
    this.#owned.add(copy);
    return copy;
  }

  #countWork(work: number): void {
    this.#work += work;
    if (this.#work > MAX_WORK) throw new DraftError('Unable to complete the patch, it needs too much work');
  }
}

const isContainer = (value: unknown): value is Container => typeof value === 'object' && value !== null;

/** Parses an index: `0`, `12`, or `-1` for the last element, without leading zeros. */
function parseIndex(key: string): number | undefined {
  return /^(?:0|-?[1-9][0-9]{0,9})$/.test(key) ? Number(key) : undefined;
}

function existingIndex(array: readonly unknown[], key: string): number {
  const number = parseIndex(key);
  if (number === undefined) throw new DraftError(notANumberText(key));
  const index = number < 0 ? number + array.length : number;
  if (index < 0 || index >= array.length) throw invalidIndexError(key);
  return index;
}

const notANumberText = (key: string) => `strconv.Atoi: parsing ${JSON.stringify(key)}: invalid syntax`;
const invalidIndexError = (key: string) =>
  new DraftError(`Unable to access invalid index: ${key}: invalid index referenced`);

/** Returns the property that a token of the pointer names, or undefined if it does not exist. */
function childProperty(container: Container, token: string): string | undefined {
  if (!Array.isArray(container)) return Object.hasOwn(container, token) ? token : undefined;
  const number = parseIndex(token);
  if (number === undefined) return undefined;
  const index = number < 0 ? number + container.length : number;
  return index >= 0 && index < container.length ? String(index) : undefined;
}

/** Returns the approximate size of the value as JSON. Throws if it is nested too deeply to traverse. */
function jsonSize(value: unknown, depth: number): number {
  if (typeof value === 'string') return value.length + 2;
  if (!isContainer(value)) return 4;
  if (depth > MAX_DEPTH) throw tooDeepError();
  let size = 2;
  if (Array.isArray(value)) for (const item of value) size += 1 + jsonSize(item, depth + 1);
  else for (const key of Object.keys(value)) size += key.length + 4 + jsonSize(value[key], depth + 1);
  return size;
}

function checkDepth(value: unknown, depth: number): void {
  if (!isContainer(value)) return;
  if (depth > MAX_DEPTH) throw tooDeepError();
  for (const child of Array.isArray(value) ? value : Object.values(value)) checkDepth(child, depth + 1);
}

const tooDeepError = () =>
  new DraftError(`Unable to complete the patch, the document would be nested deeper than ${MAX_DEPTH}`);
