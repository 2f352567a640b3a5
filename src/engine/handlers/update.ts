/** PUT of one object or of its status. */
import type { Call } from '#engine/handlers/call.ts';
import { modify } from '#engine/handlers/write/modify.ts';
import { readRequestObject } from '#engine/handlers/write/read-object.ts';
import { writeOptions } from '#engine/handlers/options.ts';
import type { ApiResponse } from '#engine/request/request.ts';
import { deepClone } from '#kube/deep.ts';

export async function updateObject(call: Call): Promise<ApiResponse> {
  const options = writeOptions(call.request.query, 'UpdateOptions');
  const object = await readRequestObject(call);
  // A retry starts from the sent object, not from the last attempt.
  return modify(call, { ...options, needsRevision: true, change: () => deepClone(object) });
}
