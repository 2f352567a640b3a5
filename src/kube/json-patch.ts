/**
 * JSON Patch (RFC 6902) as the API server applies it, with the errors of evanphx/json-patch, which Kubernetes uses.
 * Where that is more lenient than the RFC, clients have come to rely on it, and so are we: `replace` of an absent key
 * adds it, `test` of an absent key for null holds, and an index may count from the end (`-1`).
 */
import { tooLarge } from '#kube/api-error.ts';
import { deepEqual } from '#kube/deep.ts';
import { DraftError, JsonDraft } from '#kube/json-draft.ts';
import { isRecord } from '#kube/meta.ts';

export class JsonPatchError extends Error {
  override name = 'JsonPatchError';
  /** malformed: not a JSON patch at all (400). failed: it does not apply to this document (422). */
  readonly kind: 'malformed' | 'failed';

  constructor(kind: 'malformed' | 'failed', message: string) {
    super(message);
    this.kind = kind;
  }
}

const MAX_OPERATIONS = 10_000;

/**
 * The patched document; neither input changes, and untouched parts are shared with the result. Throws JsonPatchError,
 * or a 413 ApiError for too many operations.
 */
export function applyJsonPatch(document: unknown, patch: unknown): unknown {
  const operations = decodePatch(patch);
  const draft = new JsonDraft(document);
  for (const operation of operations) {
    const apply = OPERATIONS.get(operation.op as string);
    if (apply === undefined) throw failed(`Unexpected kind: ${operation.op ?? 'unknown'}`);
    apply(draft, operation);
  }
  return within(identity, () => draft.finish());
}

interface Operation {
  op?: string | null;
  path?: string | null;
  from?: string | null;
  value?: unknown;
}

function decodePatch(patch: unknown): readonly Operation[] {
  if (patch === null) return [];
  if (!Array.isArray(patch)) throw malformed(patch, 'Go value of type []handlers.jsonPatchOp');
  if (patch.length > MAX_OPERATIONS) {
    throw tooLarge(`The allowed maximum operations in a JSON patch is ${MAX_OPERATIONS}, got ${patch.length}`);
  }
  return patch.map(decodeOperation);
}

function decodeOperation(operation: unknown): Operation {
  if (operation === null) return {};
  if (!isRecord(operation)) throw malformed(operation, 'Go value of type handlers.jsonPatchOp');
  for (const name of ['op', 'path', 'from']) {
    const text = operation[name] ?? '';
    if (typeof text !== 'string') throw malformed(text, `Go struct field jsonPatchOp.${name} of type string`);
  }
  return operation;
}

function malformed(value: unknown, into: string): JsonPatchError {
  const kind = Array.isArray(value) ? 'array' : typeof value === 'boolean' ? 'bool' : typeof value;
  return new JsonPatchError('malformed', `error decoding patch: json: cannot unmarshal ${kind} into ${into}`);
}

const failed = (why: string) => new JsonPatchError('failed', why);

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
  const place = draft.find(path, 'write');
  if (place === undefined) throw missing(`add operation does not apply: doc is missing path: "${path}"`);
  within(inPath('add', path), () => draft.insert(place, operation.value ?? null));
}

function remove(draft: JsonDraft, operation: Operation): void {
  const path = pathOf(operation);
  const place = draft.find(path, 'write');
  if (place === undefined || place === 'root') {
    throw missing(`remove operation does not apply: doc is missing path: "${path}"`);
  }
  within(inPath('remove', path), () => draft.take(place));
}

function replace(draft: JsonDraft, operation: Operation): void {
  const path = pathOf(operation);
  const place = draft.find(path, 'write');
  if (place === undefined) throw missing(`replace operation does not apply: doc is missing path: ${path}`);
  const missingKey = () => `replace operation does not apply: doc is missing key: ${path}: missing value`;
  within(missingKey, () => draft.replace(place, operation.value ?? null));
}

function move(draft: JsonDraft, operation: Operation): void {
  const from = fromOf(operation);
  const path = pathOf(operation);
  const source = draft.find(from, 'write');
  if (source === undefined || source === 'root') {
    throw missing(`move operation does not apply: doc is missing from path: ${from}`);
  }
  const value = within(inPath('move', source.key), () => draft.take(source));
  // Into itself: in an array, the next element would otherwise stand where the pointer goes through.
  const target = path.startsWith(`${from}/`) ? undefined : draft.find(path, 'write');
  if (target === undefined) throw missing(`move operation does not apply: doc is missing destination path: ${path}`);
  within(inPath('move', path), () => draft.insert(target, value));
}

function copy(draft: JsonDraft, operation: Operation): void {
  const from = fromOf(operation);
  const path = pathOf(operation);
  const source = draft.find(from, 'read');
  const value =
    source &&
    within(
      (why) => `error in copy for from: '${from}': ${why}`,
      () => draft.read(source),
    );
  if (value === undefined) throw missing(`copy operation does not apply: doc is missing from path: ${from}`);
  const duplicate = within(identity, () => draft.duplicate(value));
  const target = draft.find(path, 'write');
  if (target === undefined) throw missing(`copy operation does not apply: doc is missing destination path: ${path}`);
  within(
    (why) => `error while adding value during copy: ${why}`,
    () => draft.insert(target, duplicate),
  );
}

function test(draft: JsonDraft, operation: Operation): void {
  const path = pathOf(operation);
  const place = draft.find(path, 'read');
  if (place === undefined) throw missing(`test operation does not apply: is missing path: ${path}`);
  const value = within(inPath('test', path), () => draft.read(place));
  // No bound is needed: the first test that does not hold ends the patch, and one that holds is as long as its value.
  if (!deepEqual(operation.value ?? null, value ?? null)) throw failed(`testing value ${path} failed: test failed`);
}

const missing = (why: string) => failed(`${why}: missing value`);
const inPath = (op: string, path: string) => (why: string) => `error in ${op} for path: '${path}': ${why}`;
const identity = (why: string) => why;

/** Runs an edit; what the draft refuses is told in the words of the operation. */
function within<T>(wording: (why: string) => string, edit: () => T): T {
  try {
    return edit();
  } catch (error) {
    throw error instanceof DraftError ? failed(wording(error.message)) : error;
  }
}

function pathOf({ op, path }: Operation): string {
  if (typeof path === 'string') return path;
  throw missing(`${op} operation failed to decode path`);
}

function fromOf({ op, from }: Operation): string {
  if (typeof from === 'string') return from;
  throw missing(`${op} operation failed to decode from: operation, missing from field`);
}
