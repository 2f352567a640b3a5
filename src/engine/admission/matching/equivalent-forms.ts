/**
 * The objects of a request in other versions of their kind, for policies and webhooks that match those (matchPolicy
 * Equivalent), if a webhook converts them. Prepared before evaluation, and again when an object has changed. Other
 * kinds need no forms: their versions differ only in apiVersion.
 */
import type { AdmissionAttributes } from '#engine/admission/admission.ts';
import type { Resource } from '#engine/registry/resource.ts';
import { apiVersionOf, type KubeObject } from '#kube/meta.ts';

/** By request instead of by object: fields that the server sets between two evaluations belong to the second. */
const forms = new WeakMap<AdmissionAttributes, Map<Resource, Map<KubeObject, KubeObject>>>();

/** Returns undefined if there is nothing to wait for. `versions` is called only if needed. Rejects with an ApiError. */
export function prepareForms(
  attributes: AdmissionAttributes,
  versions: () => readonly (Resource | undefined)[],
): Promise<void> | undefined {
  if (!isConverted(attributes)) return undefined;
  const { resource, object, oldObject } = attributes;
  const missing: { version: Resource; from: KubeObject }[] = [];
  for (const version of new Set(versions())) {
    if (version === undefined || version === resource) continue;
    for (const from of [object, oldObject]) {
      if (from !== undefined && formOf(from, attributes, version) === undefined) missing.push({ version, from });
    }
  }
  return missing.length === 0 ? undefined : convertAll(attributes, missing);
}

/** Returns undefined if there is no form in that version, or if it was not prepared. */
export function formOf(object: KubeObject, attributes: AdmissionAttributes, version: Resource): KubeObject | undefined {
  return forms.get(attributes)?.get(version)?.get(object);
}

/** Drops the forms of a changed object. */
export function dropForms(attributes: AdmissionAttributes): void {
  forms.delete(attributes);
}

/** Converts a changed form to the version of the request; undefined = the versions differ only in apiVersion. */
export function fromForm(attributes: AdmissionAttributes, changed: KubeObject): Promise<KubeObject> | undefined {
  if (!isConverted(attributes) || changed.apiVersion === apiVersionOf(attributes.resource)) return undefined;
  return convert(attributes, attributes.resource, changed);
}

/** A Scale is the same in every version. */
function isConverted({ resource, kind }: AdmissionAttributes): boolean {
  return resource.stored?.webhook !== undefined && kind.kind === resource.kind && kind.group === resource.group;
}

async function convertAll(
  attributes: AdmissionAttributes,
  missing: readonly { version: Resource; from: KubeObject }[],
): Promise<void> {
  for (const { version, from } of missing) {
    const form = await convert(attributes, version, from);
    const known = forms.get(attributes) ?? new Map<Resource, Map<KubeObject, KubeObject>>();
    forms.set(
      attributes,
      known.set(version, (known.get(version) ?? new Map<KubeObject, KubeObject>()).set(from, form)),
    );
  }
}

async function convert(attributes: AdmissionAttributes, to: Resource, object: KubeObject): Promise<KubeObject> {
  const webhook = attributes.resource.stored!.webhook!;
  const [form] = await webhook.convert([object], apiVersionOf(to), attributes.signal);
  to.stored?.schemaOf(to.version)?.prune(form!);
  return form!;
}
