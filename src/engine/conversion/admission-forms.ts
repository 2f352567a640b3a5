/**
 * The objects of a request in other versions of their kind, for policies and webhooks that were written for those
 * (matchPolicy Equivalent), where a webhook converts them. Made before anybody looks, and made again when an object has
 * changed. All other kinds have no forms: between their versions only the name differs.
 */
import type { AdmissionAttributes } from '#engine/admission/admission.ts';
import type { Resource } from '#engine/registry/resource.ts';
import { apiVersionOf, type KubeObject } from '#kube/meta.ts';

/** By the request, not by the object: what the server fills in between two questions is part of the second. */
const forms = new WeakMap<AdmissionAttributes, Map<Resource, Map<KubeObject, KubeObject>>>();

/** undefined = nothing is to be waited for. `versions` is asked only where it matters. Rejects with an ApiError. */
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
  return missing.length === 0 ? undefined : makeAll(attributes, missing);
}

/** undefined = it has none in that version, or was not prepared. */
export function formOf(object: KubeObject, attributes: AdmissionAttributes, version: Resource): KubeObject | undefined {
  return forms.get(attributes)?.get(version)?.get(object);
}

/** The object has changed. */
export function forgetForms(attributes: AdmissionAttributes): void {
  forms.delete(attributes);
}

/** What became of a form, in the version of the request; undefined = between versions only the name differs. */
export function fromForm(attributes: AdmissionAttributes, changed: KubeObject): Promise<KubeObject> | undefined {
  if (!isConverted(attributes) || changed.apiVersion === apiVersionOf(attributes.resource)) return undefined;
  return converted(attributes, attributes.resource, changed);
}

/** A Scale is the same in every version. */
function isConverted({ resource, kind }: AdmissionAttributes): boolean {
  return resource.stored?.webhook !== undefined && kind.kind === resource.kind && kind.group === resource.group;
}

async function makeAll(
  attributes: AdmissionAttributes,
  missing: readonly { version: Resource; from: KubeObject }[],
): Promise<void> {
  for (const { version, from } of missing) {
    const form = await converted(attributes, version, from);
    const known = forms.get(attributes) ?? new Map<Resource, Map<KubeObject, KubeObject>>();
    forms.set(
      attributes,
      known.set(version, (known.get(version) ?? new Map<KubeObject, KubeObject>()).set(from, form)),
    );
  }
}

async function converted(attributes: AdmissionAttributes, to: Resource, object: KubeObject): Promise<KubeObject> {
  const webhook = attributes.resource.stored!.webhook!;
  const [form] = await webhook.convert([object], apiVersionOf(to), attributes.signal);
  to.stored?.schemaOf(to.version)?.prune(form!);
  return form!;
}
