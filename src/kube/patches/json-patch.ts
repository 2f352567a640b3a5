/**
 * JSON Patch (RFC 6902) as the API server applies it, with the errors of evanphx/json-patch, the library of Kubernetes.
 * That library is more lenient than the RFC, and clients rely on it: `replace` of an absent key adds it, `test` of an
 * absent key against null passes, and an index may count from the end (`-1`).
 */
import { tooLarge } from '#kube/api-error.ts';
import { deepEqual } from '#kube/deep.ts';
import { DraftError, JsonDraft } from '#kube/patches/json-draft.ts';
import { isRecord } from '#kube/meta.ts';

export class JsonPatchError extends Error {
  override name = 'JsonPatchError';
  /** malformed: not a valid JSON patch (400). failed: cannot be applied to this document (422). */
  readonly kind: 'malformed' | 'failed';

  constructor(kind: 'malformed' | 'failed', message: string) {
    super(message);
    this.kind = kind;
  }
}

const MAX_OPERATIONS = 10_000;

/**
 * Returns the patched document. Neither input changes; the result shares unchanged parts with them. Throws
 * JsonPatchError, or a 413 ApiError for too many operations.
 */
export function applyJsonPatch(document: unknown, patch: unknown): unknown {
  const operations = decodePatch(patch);
  const draft = new JsonDraft(document);
  for (const operation of operations) {
    const apply = OPERATIONS.get(operation.op as string);
    if (apply === undefined) throw failedError(`Unexpected kind: ${operation.op ?? 'unknown'}`);
    apply(draft, operation);
  }
  return rewordErrors(unchanged, () => draft.finish());
}

interface Operation {
  op?: string | null;
  path?: string | null;
  from?: string | null;
  value?: unknown;
}

function decodePatch(patch: unknown): readonly Operation[] {
  if (patch === null) return [];
  if (!Array.isArray(patch)) throw malformedError(patch, 'Go value of type []handlers.jsonPatchOp');
  if (patch.length > MAX_OPERATIONS) {
    throw tooLarge(`The allowed maximum operations in a JSON patch is ${MAX_OPERATIONS}, got ${patch.length}`);
  }
  return patch.map(decodeOperation);
}

function decodeOperation(operation: unknown): Operation {
  if (operation === null) return {};
  if (!isRecord(operation)) throw malformedError(operation, 'Go value of type handlers.jsonPatchOp');
  for (const name of ['op', 'path', 'from']) {
    const text = operation[name] ?? '';
    if (typeof text !== 'string') throw malformedError(text, `Go struct field jsonPatchOp.${name} of type string`);
  }
  return operation;
}

function malformedError(value: unknown, into: string): JsonPatchError {
  const kind = Array.isArray(value) ? 'array' : typeof value === 'boolean' ? 'bool' : typeof value;
  return new JsonPatchError('malformed', `error decoding patch: json: cannot unmarshal ${kind} into ${into}`);
}

const failedError = (message: string) => new JsonPatchError('failed', message);

const OPERATIONS: ReadonlyMap<string, (draft: JsonDraft, operation: Operation) => void> = new Map([
  ['add', add],
  ['remove', remove],
  ['replace', replace],
  ['move', move],
  ['copy', copy],
  ['test', test],
]);

function add(draft: JsonDraft, operation: Operation): void {
  const path = pathOf(operation);
  const location = draft.find(path, 'write');
  if (location === undefined) throw missingError(`add operation does not apply: doc is missing path: "${path}"`);
  rewordErrors(inPathText('add', path), () => draft.insert(location, operation.value ?? null));
}

function remove(draft: JsonDraft, operation: Operation): void {
  const path = pathOf(operation);
  const location = draft.find(path, 'write');
  if (location === undefined || location === 'root') {
    throw missingError(`remove operation does not apply: doc is missing path: "${path}"`);
  }
  rewordErrors(inPathText('remove', path), () => draft.remove(location));
}

function replace(draft: JsonDraft, operation: Operation): void {
  const path = pathOf(operation);
  const location = draft.find(path, 'write');
  if (location === undefined) throw missingError(`replace operation does not apply: doc is missing path: ${path}`);
  const missingKey = () => `replace operation does not apply: doc is missing key: ${path}: missing value`;
  rewordErrors(missingKey, () => draft.replace(location, operation.value ?? null));
}

function move(draft: JsonDraft, operation: Operation): void {
  const from = fromOf(operation);
  const path = pathOf(operation);
  const source = draft.find(from, 'write');
  if (source === undefined || source === 'root') {
    throw missingError(`move operation does not apply: doc is missing from path: ${from}`);
  }
  const value = rewordErrors(inPathText('move', source.key), () => draft.remove(source));
  // A move into itself: in an array, the pointer would otherwise lead through the next element.
  const target = path.startsWith(`${from}/`) ? undefined : draft.find(path, 'write');
  if (target === undefined) {
    throw missingError(`move operation does not apply: doc is missing destination path: ${path}`);
  }
  rewordErrors(inPathText('move', path), () => draft.insert(target, value));
}

function copy(draft: JsonDraft, operation: Operation): void {
  const from = fromOf(operation);
  const path = pathOf(operation);
  const source = draft.find(from, 'read');
  const value =
    source &&
    rewordErrors(
      (message) => `error in copy for from: '${from}': ${message}`,
      () => draft.read(source),
    );
  if (value === undefined) throw missingError(`copy operation does not apply: doc is missing from path: ${from}`);
  const duplicate = rewordErrors(unchanged, () => draft.duplicate(value));
  const target = draft.find(path, 'write');
  if (target === undefined) {
    throw missingError(`copy operation does not apply: doc is missing destination path: ${path}`);
  }
  rewordErrors(
    (message) => `error while adding value during copy: ${message}`,
    () => draft.insert(target, duplicate),
  );
}

function test(draft: JsonDraft, operation: Operation): void {
  const path = pathOf(operation);
  const location = draft.find(path, 'read');
  if (location === undefined) throw missingError(`test operation does not apply: is missing path: ${path}`);
  const value = rewordErrors(inPathText('test', path), () => draft.read(location));
  // Needs no bound: the first failing test ends the patch, and a passing one costs as much as its value is long.
  if (!deepEqual(operation.value ?? null, value ?? null)) {
    throw failedError(`testing value ${path} failed: test failed`);
  }
}

const missingError = (message: string) => failedError(`${message}: missing value`);
const inPathText = (op: string, path: string) => (message: string) => `error in ${op} for path: '${path}': ${message}`;
const unchanged = (message: string) => message;

/** Runs an edit and rewords an error of the draft. */
function rewordErrors<T>(reword: (message: string) => string, edit: () => T): T {
  try {
    return edit();
  } catch (error) {
    throw error instanceof DraftError ? failedError(reword(error.message)) : error;
  }
}

function pathOf({ op, path }: Operation): string {
  if (typeof path === 'string') return path;
  throw missingError(`${op} operation failed to decode path`);
}

function fromOf({ op, from }: Operation): string {
  if (typeof from === 'string') return from;
  throw missingError(`${op} operation failed to decode from: operation, missing from field`);
}
