/** Writes by the server itself while it serves another request, without admission and shaping. */
import type { Admission } from '#engine/admission/admission.ts';
import { admissionAttributes } from '#engine/handlers/write/admit.ts';
import { decodeEntry, prepareEntries, type Call } from '#engine/handlers/call.ts';
import { entryId } from '#engine/registry/stored-entries.ts';
import { commitObject } from '#engine/handlers/write/commit.ts';
import { MAX_WRITE_ATTEMPTS } from '#engine/request/limits.ts';
import { conflict, MODIFIED, notFound } from '#kube/api-error.ts';
import { deepClone } from '#kube/deep.ts';
import type { KubeObject } from '#kube/meta.ts';

const NO_ADMISSION: Admission = { mutate() {}, validate() {}, guard() {} };

/** Returns the same call without admission, which has already run. */
export function withoutAdmission(call: Call): Call {
  return { ...call, admission: NO_ADMISSION };
}

interface Rewrite {
  readonly namespace: string;
  readonly name: string;
  readonly dryRun: boolean;
  /** Modifies the object in place, or throws. Called again if another write came first. */
  change(object: KubeObject): void;
}

/** Rewrites an object of the call's own kind. Resolves to the stored object. */
export async function rewrite(call: Call, { namespace, name, dryRun, change }: Rewrite): Promise<KubeObject> {
  const { resource } = call.served;
  const id = entryId(resource, namespace, name);
  for (let attempt = 1; attempt <= MAX_WRITE_ATTEMPTS; attempt++) {
    const entry = call.store.latest(resource.collection, id);
    if (entry === undefined) throw notFound(resource, name);
    const reading = prepareEntries(call, [entry]);
    if (reading !== undefined) await reading;
    call.pace.noteSize(entry.bytes.length);
    if (call.pace.isLarge) await call.pace.step();
    const oldObject = decodeEntry(entry, resource);
    const object = deepClone(oldObject);
    change(object);
    if (dryRun) return object;
    const own = withoutAdmission(call);
    const attributes = admissionAttributes(own, { operation: 'UPDATE', name, object, oldObject, dryRun, options: {} });
    const written = await commitObject(own, { id, expected: entry.revision, object, admitted: attributes });
    if (written === undefined) continue;
    await prepareEntries(call, [written]);
    return decodeEntry(written, resource);
  }
  throw conflict(resource, name, MODIFIED);
}
