/** Validates definitions beyond their schema, with Kubernetes' messages. Does not repeat the errors of the schema. */
import { checkConversion } from '#engine/registry/crd/conversion-rules.ts';
import { isEstablished } from '#engine/registry/crd/crd-status.ts';
import { asCrd, type Crd, type CrdNames, type CrdSpec } from '#engine/registry/crd/definition.ts';
import { allBranches } from '#engine/registry/crd/schema-tree.ts';
import { checkSchemaShape } from '#engine/registry/crd/schema-shape.ts';
import { checkVersion } from '#engine/registry/crd/version-rules.ts';
import { FIELD_IMMUTABLE } from '#engine/registry/metadata.ts';
import { supportedFormat } from '#engine/registry/structural/formats.ts';
import { type FieldError, invalidValue, requiredValue, unsupportedValue } from '#kube/field-error.ts';
import { isRecord, type KubeObject } from '#kube/meta.ts';
import { nameErrors } from '#kube/names.ts';
import type { Schema } from '#kube/schema.ts';

/** A schema of 3 MiB could have an error in every node. */
const MAX_ERRORS = 256;
const SCOPES = ['Cluster', 'Namespaced'];

export function validateCrd(object: KubeObject): FieldError[] {
  if (!hasSpec(object)) return [];
  const crd = asCrd(object);
  return [...checkCrdName(crd), ...checkSpec(crd.spec), ...checkStoredVersions(crd)].slice(0, MAX_ERRORS);
}

/** Group and plural form the name; scope and kind determine where the objects are stored. */
export function validateCrdUpdate(object: KubeObject, old: KubeObject): FieldError[] {
  if (!hasSpec(object) || !hasSpec(old)) return [];
  const { spec } = asCrd(object);
  const before = asCrd(old).spec;
  const errors: FieldError[] = [];
  const keep = (path: string, value: unknown, former: unknown) => {
    if (value !== former) errors.push(invalidValue(path, value ?? '', FIELD_IMMUTABLE));
  };
  if (isEstablished(old)) {
    keep('spec.scope', spec.scope, before.scope);
    keep('spec.names.kind', spec.names.kind, before.names.kind);
  }
  keep('spec.group', spec.group, before.group);
  keep('spec.names.plural', spec.names.plural, before.names.plural);
  return errors;
}

/** Returns warnings for formats that are ignored, as in Kubernetes. */
export function crdWarnings(object: KubeObject): string[] {
  if (!hasSpec(object)) return [];
  const formats = new Set<string>();
  for (const [i, { schema }] of asCrd(object).spec.versions.entries()) {
    const root = schema?.openAPIV3Schema;
    const path = `spec.versions[${i}]`;
    if (root !== undefined && checkSchemaShape(root, path).length === 0) collectUnknownFormats(root, path, formats);
  }
  return [...formats].map((format) => `unrecognized format ${JSON.stringify(format)}`);
}

function collectUnknownFormats(schema: Schema, path: string, formats: Set<string>): void {
  if (schema.format && supportedFormat(schema) === undefined) formats.add(schema.format);
  for (const branch of allBranches(schema, path)) collectUnknownFormats(branch.schema, branch.path, formats);
}

/** Reports whether the spec has its parts. The schema reports missing ones. */
function hasSpec({ spec }: KubeObject): boolean {
  return (
    isRecord(spec) && isRecord(spec['names']) && Array.isArray(spec['versions']) && spec['versions'].every(isRecord)
  );
}

function checkCrdName({ metadata, spec }: Crd): FieldError[] {
  const { name } = metadata;
  if (!name || name === `${spec.names.plural}.${spec.group}`) return [];
  return [invalidValue('metadata.name', name, 'must be spec.names.plural+"."+spec.group')];
}

function checkSpec(spec: CrdSpec): FieldError[] {
  const errors: FieldError[] = [...checkGroup(spec.group)];
  if (spec.scope === '') errors.push(requiredValue('spec.scope'));
  else if (spec.scope !== undefined && !SCOPES.includes(spec.scope)) {
    errors.push(unsupportedValue('spec.scope', spec.scope, SCOPES));
  }
  if (spec.preserveUnknownFields === true) {
    const detail =
      'cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead';
    errors.push(invalidValue('spec.preserveUnknownFields', true, detail));
  }
  errors.push(...checkVersions(spec), ...checkNames(spec.names, 'spec.names'), ...checkConversion(spec));
  return errors;
}

function checkGroup(group: string | undefined): FieldError[] {
  if (group === undefined) return [];
  if (group === '') return [requiredValue('spec.group')];
  const messages = nameErrors('subdomain', group);
  if (messages.length > 0) return [invalidValue('spec.group', group, messages.join(','))];
  return group.includes('.') ? [] : [invalidValue('spec.group', group, 'should be a domain with at least one dot')];
}

function checkVersions({ versions }: CrdSpec): FieldError[] {
  const errors: FieldError[] = [];
  for (const [i, version] of versions.entries()) {
    const path = `spec.versions[${i}]`;
    const messages = version.name === undefined ? [] : nameErrors('label1035', version.name);
    if (messages.length > 0) errors.push(invalidValue(`${path}.name`, version.name, messages.join(',')));
    errors.push(...checkVersion(version, path));
  }
  if (new Set(versions.map(({ name }) => name)).size < versions.length) {
    errors.push(invalidValue('spec.versions', versions, 'must contain unique version names'));
  }
  if (versions.filter(({ storage }) => storage).length !== 1) {
    errors.push(invalidValue('spec.versions', versions, 'must have exactly one version marked as storage version'));
  }
  return errors;
}

function checkNames(names: CrdNames, path: string): FieldError[] {
  const errors: FieldError[] = [];
  const hold = (at: string, name: string | undefined, { isKind = false } = {}) => {
    if (!name) return;
    const messages = nameErrors('label1035', isKind ? name.toLowerCase() : name).join(',');
    const detail = isKind ? `may have mixed case, but should otherwise match: ${messages}` : messages;
    if (messages !== '') errors.push(invalidValue(`${path}.${at}`, name, detail));
  };
  for (const field of ['plural', 'kind'] as const) {
    if (names[field] === '') errors.push(requiredValue(`${path}.${field}`));
  }
  hold('plural', names.plural);
  hold('singular', names.singular);
  hold('kind', names.kind, { isKind: true });
  hold('listKind', names.listKind, { isKind: true });
  for (const [i, name] of (names.shortNames ?? []).entries()) hold(`shortNames[${i}]`, name);
  if (names.kind && names.kind === names.listKind) {
    errors.push(invalidValue(`${path}.listKind`, names.listKind, 'kind and listKind may not be the same'));
  }
  for (const [i, name] of (names.categories ?? []).entries()) hold(`categories[${i}]`, name);
  return errors;
}

/** Does nothing without stored versions: the server has not processed the definition yet. */
function checkStoredVersions({ spec, status }: Crd): FieldError[] {
  const path = 'status.storedVersions';
  const stored = status?.storedVersions;
  if (stored === undefined) return [];
  if (stored.length === 0) return [invalidValue(path, stored, 'must have at least one stored version')];
  const known = new Set(spec.versions.map(({ name }) => name));
  const missing = spec.versions.filter(({ name, storage }) => storage && !stored.includes(name));
  return [
    ...missing.map(({ name }) => invalidValue(path, stored, `must have the storage version ${name}`)),
    ...stored.flatMap((version, i) =>
      known.has(version) ? [] : [invalidValue(`${path}[${i}]`, version, 'must appear in spec.versions')],
    ),
  ];
}
