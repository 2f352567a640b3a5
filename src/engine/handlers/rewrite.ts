/** Writes that the server itself makes on the way of serving another request: nobody is asked and nothing is shaped. */
import type { Admission } from '#engine/admission/admission.ts';
import { admissionAttributes } from '#engine/handlers/admit.ts';
import { decodeEntry, entryId, readable, type Call } from '#engine/handlers/call.ts';
import { commit } from '#engine/handlers/commit.ts';
import { MAX_WRITE_ATTEMPTS } from '#engine/limits.ts';
import { conflict, MODIFIED, notFound } from '#kube/api-error.ts';
import { deepClone } from '#kube/deep.ts';
import type { KubeObject } from '#kube/meta.ts';

const NOBODY: Admission = { mutate() {}, validate() {}, guard() {} };

/** The same call for which admission has been asked already. */
export function admitted(call: Call): Call {
  return { ...call, admission: NOBODY };
}

export interface Rewrite {
  readonly namespace: string;
  readonly name: string;
  readonly dryRun: boolean;
  /** Changes the object in place, or throws. Called again when somebody was faster. */
  change(object: KubeObject): void;
}

/** Of an object of the call's own kind. Resolves with the object as stored. */
export async function rewrite(call: Call, { namespace, name, dryRun, change }: Rewrite): Promise<KubeObject> {
  const { resource } = call.served;
  const id = entryId(resource, namespace, name);
  for (let attempt = 1; attempt <= MAX_WRITE_ATTEMPTS; attempt++) {
    const entry = call.store.latest(resource.collection, id);
    if (entry === undefined) throw notFound(resource, name);
    const reading = readable(call, [entry]);
    if (reading !== undefined) await reading;
    const oldObject = decodeEntry(entry, resource);
    const object = deepClone(oldObject);
    change(object);
    if (dryRun) return object;
    const own = admitted(call);
    const asked = admissionAttributes(own, { operation: 'UPDATE', name, object, oldObject, dryRun, options: {} });
    const written = await commit(own, { id, expected: entry.revision, object, admitted: asked });
    if (written === undefined) continue;
    await readable(call, [written]);
    return decodeEntry(written, resource);
  }
  throw conflict(resource, name, MODIFIED);
}
