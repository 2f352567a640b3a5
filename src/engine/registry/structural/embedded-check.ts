/** Checks an embedded resource (x-kubernetes-embedded-resource), which has a type and metadata of its own. */
import { metadataSchema } from '#engine/registry/kinds/meta/object-meta.ts';
import { validateMetadata } from '#engine/registry/metadata.ts';
import { decodeTypeError } from '#engine/registry/structural/decode-type-error.ts';
import { compileDecodes } from '#engine/registry/structural/decode.ts';
import type { Check, ValidationReport } from '#engine/registry/structural/report.ts';
import { invalidValue, requiredValue } from '#kube/field-error.ts';
import { isRecord, type KubeObject, type ObjectMeta } from '#kube/meta.ts';
import { nameErrors } from '#kube/names.ts';

type Fields = Record<string, unknown>;

const decodes = compileDecodes(metadataSchema);

export const embeddedCheck: Check<Fields> = (object, report) => {
  const at = (name: string) => {
    const path = report.path();
    return path === '' ? name : `${path}.${name}`;
  };
  for (const [name, findError] of [
    ['apiVersion', findApiVersionError],
    ['kind', findKindError],
  ] as const) {
    const value = object[name];
    if (!Object.hasOwn(object, name)) report.addEvenIfUnchanged(requiredValue(at(name), 'must not be empty'));
    else if (typeof value !== 'string') report.addEvenIfUnchanged(invalidValue(at(name), value, 'must be a string'));
    else if (value === '') report.addEvenIfUnchanged(invalidValue(at(name), value, 'must not be empty'));
    else {
      const why = findError(value);
      if (why !== undefined) report.addEvenIfUnchanged(invalidValue(at(name), value, why));
    }
  }
  if (Object.hasOwn(object, 'metadata')) checkMetadata(object['metadata'], at('metadata'), report);
};

function findApiVersionError(apiVersion: string): string | undefined {
  return apiVersion.split('/').length > 2 ? `unexpected GroupVersion string: ${apiVersion}` : undefined;
}

function findKindError(kind: string): string | undefined {
  const errors = nameErrors('label1035', kind.toLowerCase());
  return errors.length === 0 ? undefined : `may have mixed case, but should otherwise match: ${errors.join(',')}`;
}

function checkMetadata(metadata: unknown, path: string, report: ValidationReport): void {
  if (!isRecord(metadata)) {
    const got = Array.isArray(metadata) ? 'array' : typeof metadata === 'boolean' ? 'bool' : typeof metadata;
    const why = `json: cannot unmarshal ${got} into Go value of type v1.ObjectMeta`;
    if (metadata !== null) report.addEvenIfUnchanged(invalidValue(path, metadata, why));
    return;
  }
  if (!decodes(metadata)) {
    const why = decodeTypeError({ ...metadata, kind: 'ObjectMeta' }, { schema: metadataSchema, decodes });
    report.addEvenIfUnchanged(invalidValue(path, metadata, why ?? 'is malformed'));
    return;
  }
  // The object may be a template or get a name later.
  const named = { name: 'fakename', ...(metadata as ObjectMeta) };
  if (named.name === '') named.name = 'fakename';
  const rules = { namespaced: Boolean(named.namespace), nameRule: 'path-segment' as const };
  for (const error of validateMetadata({ metadata: named } as KubeObject, rules)) {
    report.addEvenIfUnchanged({ ...error, field: path + error.field.slice('metadata'.length) });
  }
}
