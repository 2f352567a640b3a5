/**
 * A JSON document under edit by pointer: what JSON Patch works on. The document it starts from, and every value that is
 * put in, stay as they are: a container is copied when it is first written to and is the draft's own from then on, so
 * that many edits cost about as much as one copy. Work, depth and copied bytes are bounded.
 *
 * Which operation wanted what, and its error text, is json-patch.ts's.
 */
import { deepClone } from '#kube/deep.ts';
import { parsePointer } from '#kube/json-pointer.ts';

/** Why an edit is not possible, in the words of evanphx/json-patch. */
export class DraftError extends Error {
  override name = 'DraftError';
}

const MAX_COPIED_BYTES = 3 * 1024 * 1024;
const MAX_DEPTH = 500;
/** Array elements shifted; more than any honest patch needs, yet done in well under a second. */
const MAX_WORK = 50_000_000;

type Container = Record<string, unknown> | unknown[];

/** Where an operation acts: in the container of the pointer's last token, or on the document itself. */
export type Place = { readonly container: Container; readonly key: string } | 'root';

export class JsonDraft {
  #root: unknown;
  /** Containers made by this draft, which alone may be written to. */
  readonly #owned = new Set<object>();
  #copiedBytes = 0;
  #work = 0;
  /** Upper bound of the levels that edits may have added. */
  #levels = 0;

  constructor(document: unknown) {
    this.#root = document;
  }

  finish(): unknown {
    if (this.#levels > MAX_DEPTH) checkDepth(this.#root, 0);
    return this.#root;
  }

  /**
   * The place that a pointer names, or undefined if its parent does not exist. To write there, each container on the
   * way becomes the draft's own. A place is good until the next edit.
   */
  find(pointer: string, purpose: 'read' | 'write'): Place | undefined {
    const tokens = parsePointer(pointer);
    if (tokens === undefined || tokens.includes('__proto__')) return undefined;
    const key = tokens.pop();
    if (key === undefined) return 'root';
    this.#levels += tokens.length + 1;

    if (!isContainer(this.#root)) return undefined;
    if (purpose === 'write') this.#root = this.#own(this.#root);
    let container = this.#root as Container;
    for (const token of tokens) {
      const property = childProperty(container, token);
      if (property === undefined) return undefined;
      let child = (container as Record<string, unknown>)[property];
      if (!isContainer(child)) return undefined;
      if (purpose === 'write') (container as Record<string, unknown>)[property] = child = this.#own(child);
      container = child as Container;
    }
    return { container, key };
  }

  /** Undefined for an absent key of an object; an index outside of its array is an error. */
  read(place: Place): unknown {
    if (place === 'root') return this.#root;
    const { container, key } = place;
    if (Array.isArray(container)) return container[existingIndex(container, key)];
    return Object.hasOwn(container, key) ? container[key] : undefined;
  }

  /** Puts a value in, in front of what stands at an index. */
  insert(place: Place, value: unknown): void {
    if (place === 'root') {
      this.#root = value;
      return;
    }
    const { container, key } = place;
    if (!Array.isArray(container)) {
      container[key] = value;
      return;
    }
    if (key === '-') {
      container.push(value);
      return;
    }
    const number = indexNumber(key);
    if (number === undefined) throw new DraftError(`value was not a proper array index: '${key}': ${notANumber(key)}`);
    const index = number < 0 ? number + container.length + 1 : number;
    if (index < 0 || index > container.length) throw invalidIndex(key);
    this.#spend(container.length - index);
    container.splice(index, 0, value);
  }

  /** Puts a value in the place of another. */
  replace(place: Place, value: unknown): void {
    if (place === 'root') this.#root = value;
    else if (Array.isArray(place.container)) place.container[existingIndex(place.container, place.key)] = value;
    else place.container[place.key] = value;
  }

  /** Removes and returns what stands at the place. */
  take({ container, key }: Exclude<Place, 'root'>): unknown {
    if (Array.isArray(container)) {
      const index = existingIndex(container, key);
      this.#spend(container.length - index);
      return container.splice(index, 1)[0];
    }
    if (!Object.hasOwn(container, key)) {
      throw new DraftError(`Unable to remove nonexistent key: ${key}: missing value`);
    }
    const value = container[key];
    delete container[key];
    return value;
  }

  /** A copy that shares nothing; all copies of one draft together are limited in size. */
  duplicate(value: unknown): unknown {
    this.#copiedBytes += jsonSize(value, 0);
    if (this.#copiedBytes > MAX_COPIED_BYTES) {
      const sizes = `${this.#copiedBytes}, exceeding the limit ${MAX_COPIED_BYTES}`;
      throw new DraftError(`Unable to complete the copy, the accumulated size increase of copy is ${sizes}`);
    }
    return deepClone(value);
  }

  #own(container: Container): Container {
    if (this.#owned.has(container)) return container;
    const copy = Array.isArray(container) ? container.slice() : { ...container };
    this.#owned.add(copy);
    return copy;
  }

  #spend(work: number): void {
    this.#work += work;
    if (this.#work > MAX_WORK) throw new DraftError('Unable to complete the patch, it needs too much work');
  }
}

const isContainer = (value: unknown): value is Container => typeof value === 'object' && value !== null;

/** `0`, `12`, or `-1` from the end; no leading zeros. */
function indexNumber(key: string): number | undefined {
  return /^(?:0|-?[1-9][0-9]{0,9})$/.test(key) ? Number(key) : undefined;
}

function existingIndex(array: readonly unknown[], key: string): number {
  const number = indexNumber(key);
  if (number === undefined) throw new DraftError(notANumber(key));
  const index = number < 0 ? number + array.length : number;
  if (index < 0 || index >= array.length) throw invalidIndex(key);
  return index;
}

const notANumber = (key: string) => `strconv.Atoi: parsing ${JSON.stringify(key)}: invalid syntax`;
const invalidIndex = (key: string) =>
  new DraftError(`Unable to access invalid index: ${key}: invalid index referenced`);

/** The property that a token on the way names, or undefined if there is none. */
function childProperty(container: Container, token: string): string | undefined {
  if (!Array.isArray(container)) return Object.hasOwn(container, token) ? token : undefined;
  const number = indexNumber(token);
  if (number === undefined) return undefined;
  const index = number < 0 ? number + container.length : number;
  return index >= 0 && index < container.length ? String(index) : undefined;
}

/** About the bytes of the value as JSON. Refuses what is nested too deep to be walked. */
function jsonSize(value: unknown, depth: number): number {
  if (typeof value === 'string') return value.length + 2;
  if (!isContainer(value)) return 4;
  if (depth > MAX_DEPTH) throw tooDeep();
  let size = 2;
  if (Array.isArray(value)) for (const item of value) size += 1 + jsonSize(item, depth + 1);
  else for (const key of Object.keys(value)) size += key.length + 4 + jsonSize(value[key], depth + 1);
  return size;
}

function checkDepth(value: unknown, depth: number): void {
  if (!isContainer(value)) return;
  if (depth > MAX_DEPTH) throw tooDeep();
  for (const child of Array.isArray(value) ? value : Object.values(value)) checkDepth(child, depth + 1);
}

const tooDeep = () =>
  new DraftError(`Unable to complete the patch, the document would be nested deeper than ${MAX_DEPTH}`);
