/** Applies the patch of a mutating webhook. Errors in the patch are reported to the client as 500. */
import type { AdmissionAttributes } from '#engine/admission/admission.ts';
import { objectIn } from '#engine/admission/matching/admission-request.ts';
import { dropForms, fromForm } from '#engine/admission/matching/equivalent-forms.ts';
import { parseJson } from '#engine/encoding/json.ts';
import type { Resource } from '#engine/registry/resource.ts';
import { type ApiError, internalError } from '#kube/api-error.ts';
import { deepClone, deepEqual } from '#kube/deep.ts';
import { applyJsonPatch } from '#kube/patches/json-patch.ts';
import { isRecord, type KubeObject } from '#kube/meta.ts';
import { errorMessage } from '#lib/error-message.ts';

/**
 * Reports whether the object changed, as a promise if it must be converted back. `version` is the one in which the
 * webhook saw the object. Throws, or rejects with, an ApiError.
 */
export function applyWebhookPatch(
  webhook: string,
  patch: string,
  attributes: AdmissionAttributes,
  version: Resource,
): boolean | Promise<boolean> {
  if (patch === '') return false;
  const operations = attempt(() => parseJson(patch));
  if (Array.isArray(operations) && operations.length === 0) return false;
  const { object } = attributes;
  if (object === undefined) {
    throw patchError(webhook, 'attempted to modify the object, which is not supported for this operation');
  }
  const seen = deepClone(objectIn(object, attributes, version)!);
  const patched = attempt(() => applyJsonPatch(seen, operations));
  assertIdentity(webhook, seen, patched);
  const back = fromForm(attributes, patched);
  return back === undefined
    ? store(attributes, object, patched)
    : back.then((patched) => store(attributes, object, patched));
}

function store(attributes: AdmissionAttributes, object: KubeObject, patched: KubeObject): boolean {
  const before = { ...object };
  replaceContent(object, { ...patched, apiVersion: before.apiVersion });
  dropForms(attributes);
  attempt(() => attributes.reshape(object));
  return !deepEqual(before, object);
}

const IDENTITY = ['name', 'namespace', 'uid'] as const;

/** A patch may not change the identity of the object; it may set a name that is not generated yet. */
function assertIdentity(webhook: string, before: KubeObject, after: unknown): asserts after is KubeObject {
  if (!isRecord(after)) throw patchError(webhook, 'replaced the object by something other than an object');
  for (const field of ['apiVersion', 'kind'] as const) {
    if (after[field] !== before[field])
      throw patchError(webhook, `attempted to change ${field}, which is not supported`);
  }
  // Kinds that are not stored (TokenRequest) may have no metadata.
  const known = before.metadata ?? {};
  const metadata = after['metadata'] ?? (before.metadata === undefined ? {} : undefined);
  if (!isRecord(metadata)) throw patchError(webhook, 'replaced metadata by something other than an object');
  for (const field of IDENTITY) {
    if (known[field] !== undefined && known[field] !== '' && metadata[field] !== known[field]) {
      throw patchError(webhook, `attempted to change metadata.${field}, which is not supported`);
    }
  }
}

/** Callers hold a reference to this object, so its content is replaced. */
function replaceContent(object: Record<string, unknown>, content: Record<string, unknown>): void {
  for (const key of Object.keys(object)) delete object[key];
  for (const [key, value] of Object.entries(content)) if (key !== '__proto__') object[key] = value;
}

const patchError = (webhook: string, what: string): ApiError => internalError(`admission webhook "${webhook}" ${what}`);

function attempt<T>(work: () => T): T {
  try {
    return work();
  } catch (error) {
    throw internalError(errorMessage(error), error);
  }
}
