/**
 * PATCH of one object or of its status: JSON patch, merge patch, strategic merge patch for built-in kinds, and apply.
 */
import { readPacedBody } from '#engine/handlers/pace.ts';
import { parsePatch, type PatchReading } from '#engine/body/decode-body.ts';
import { mediaType } from '#engine/encoding/media-types.ts';
import { applyObject } from '#engine/handlers/apply.ts';
import type { Call } from '#engine/handlers/call.ts';
import { modify } from '#engine/handlers/write/modify.ts';
import { asObject, duplicateKeyRecorder } from '#engine/handlers/write/read-object.ts';
import { writeOptions } from '#engine/handlers/options.ts';
import { findConversionError } from '#engine/registry/structural/find-conversion-error.ts';
import type { ApiResponse } from '#engine/request/request.ts';
import { ApiError, badRequest, invalidPatch, unsupportedMediaType } from '#kube/api-error.ts';
import { goText } from '#kube/go/go-text.ts';
import { applyJsonPatch, JsonPatchError } from '#kube/patches/json-patch.ts';
import { applyMergePatch } from '#kube/patches/merge-patch.ts';
import { applyStrategicMergePatch } from '#kube/patches/strategic-merge-patch.ts';
import { isRecord, type KubeObject } from '#kube/meta.ts';

const JSON_PATCH = 'application/json-patch+json';
const MERGE_PATCH = 'application/merge-patch+json';
const STRATEGIC_PATCH = 'application/strategic-merge-patch+json';
export const APPLY_PATCH = 'application/apply-patch+yaml';

const PATCHES_OF_ALL = [JSON_PATCH, MERGE_PATCH, APPLY_PATCH];
const PATCHES_OF_BUILT_IN = [JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH, APPLY_PATCH];

/** The prefixes of error messages about a patch's text. */
const READINGS: Readonly<Record<string, PatchReading>> = {
  [JSON_PATCH]: { kind: 'json patch ' },
  [STRATEGIC_PATCH]: { messagePrefix: '' },
};

export async function patchObject(call: Call): Promise<ApiResponse> {
  const type = mediaType(call.request.contentType);
  assertPatchType(call, type);
  if (type === APPLY_PATCH) return applyObject(call);
  const options = writeOptions(call.request.query, 'PatchOptions');
  const bytes = await readPacedBody(call);
  let body = parsePatch(bytes, { ...READINGS[type], onDuplicates: duplicateKeyRecorder(call) });
  let attempts = 0;
  const patched = (current: KubeObject) => applyPatch(call, type, current, body);
  const undecodable = (current: KubeObject, why: string) => {
    const result = patched(current);
    if (type !== STRATEGIC_PATCH) return invalidPatch(jsonText(result), why);
    return invalidPatch(goText(body), findConversionError(result, call.served.patchSchema) ?? why);
  };
  const change = (current: KubeObject) => {
    // Applying a patch modifies its values, so a retry parses it again.
    if (attempts++ > 0) body = parsePatch(bytes, READINGS[type]);
    return asObject(call, patched(current), (why) => undecodable(current, why));
  };
  const readsOwners = type === JSON_PATCH;
  return modify(call, { ...options, needsRevision: false, readsOwners, change, undecodable });
}

/** Limit for the patched object in an error message. */
const MAX_SHOWN = 8192;

function jsonText(value: unknown): string {
  const text = JSON.stringify(value) ?? '';
  return text.length > MAX_SHOWN ? `${text.slice(0, MAX_SHOWN)}...` : text;
}

export function assertPatchType({ served }: Call, type: string): void {
  const accepted = served.resource.builtIn ? PATCHES_OF_BUILT_IN : PATCHES_OF_ALL;
  if (!accepted.includes(type)) throw unsupportedMediaType(accepted);
}

export function applyPatch(call: Call, type: string, current: KubeObject, body: unknown): unknown {
  if (type === JSON_PATCH) {
    try {
      return applyJsonPatch(current, body);
    } catch (error) {
      if (!(error instanceof JsonPatchError)) throw error;
      if (error.kind === 'malformed') throw badRequest(error.message);
      throw new ApiError(422, 'Invalid', 'the server rejected our request due to an error in our request', {
        details: {},
        cause: error,
      });
    }
  }
  if (!isRecord(body))
    throw badRequest(
      'error decoding patch: json: cannot unmarshal array into Go value of type map[string]interface {}',
    );
  if (type === MERGE_PATCH) return applyMergePatch(current, body);
  return applyStrategicMergePatch(current, body, call.served.patchSchema);
}
