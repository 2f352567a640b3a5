/**
 * Checks the patches of a restore. Each is one JSON patch operation, applied to the restored VM. They may change its
 * identity but not remove the firmware UUID; an empty UUID requests a new one, as in KubeVirt.
 */
import { isUuid } from '#api/validation/spec/firmware.ts';
import { invalidValue, tooMany, unsupportedValue, type FieldError } from '#kube/field-error.ts';
import { parsePointer } from '#kube/patches/json-pointer.ts';
import { isRecord } from '#kube/meta.ts';

const MAX_PATCHES = 100;
const OPERATIONS = ['add', 'replace', 'remove', 'test'];
const FIELDS = new Set(['op', 'path', 'value']);
const UUID_PATH = ['spec', 'template', 'spec', 'domain', 'firmware', 'uuid'];

export function checkPatches(patches: readonly string[], path: string): FieldError[] {
  if (patches.length > MAX_PATCHES) return [tooMany(path, patches.length, MAX_PATCHES)];
  return patches.flatMap((text, i) => checkPatch(text, `${path}[${i}]`));
}

function checkPatch(text: string, field: string): FieldError[] {
  const patch = parsePatch(text);
  const invalid = (detail: string) => [invalidValue(field, text, detail)];
  if (patch === undefined) {
    return invalid('must be a JSON object like {"op": "replace", "path": "/spec/runStrategy", "value": "Halted"}');
  }
  const { op, path, value } = patch;
  const unknown = Object.keys(patch).find((key) => !FIELDS.has(key));
  if (typeof op !== 'string' || !OPERATIONS.includes(op)) return [unsupportedValue(`${field}.op`, op, OPERATIONS)];
  if (unknown !== undefined) return invalid(`has the unknown field ${JSON.stringify(unknown)}`);
  const tokens = typeof path === 'string' ? parsePointer(path) : undefined;
  if (tokens === undefined) return invalid('path must be a JSON pointer');
  if (!isPatchable(tokens)) return invalid('path must be in /metadata/labels, /metadata/annotations or /spec/');
  if (op !== 'remove' && value === undefined) return invalid(`${op} needs a value`);
  return op === 'test' ? [] : checkUuid(tokens, value, invalid);
}

function parsePatch(text: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return isRecord(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

function isPatchable([first, second]: readonly string[]): boolean {
  if (first === 'spec') return second !== undefined;
  return first === 'metadata' && (second === 'labels' || second === 'annotations');
}

/** Checks a patch of the UUID, or of a field that contains it. */
function checkUuid(tokens: readonly string[], value: unknown, invalid: (detail: string) => FieldError[]): FieldError[] {
  if (tokens.length > UUID_PATH.length || tokens.some((token, i) => token !== UUID_PATH[i])) return [];
  let uuid = value;
  for (const key of UUID_PATH.slice(tokens.length)) {
    uuid = isRecord(uuid) && Object.hasOwn(uuid, key) ? uuid[key] : undefined;
  }
  if (uuid === undefined || uuid === null) {
    return invalid('removes the firmware uuid; replace it with another one, or with "" for a new one');
  }
  if (uuid === '' || isUuid(uuid)) return [];
  return invalid('the firmware uuid must be a UUID as of RFC 4122, or "" for a new one');
}
