/**
 * Validates metadata, which is the same for every kind, with kube-apiserver's messages. Types were checked before:
 * callers decode an object with decodeTypeError first. The handlers generate names and set the server's fields.
 */
import { type FieldError, forbiddenField, invalidValue, requiredValue, tooLong, tooMany } from '#kube/field-error.ts';
import type { KubeObject, ManagedFieldsEntry, ObjectMeta, OwnerReference } from '#kube/meta.ts';
import {
  annotationKeyErrors,
  labelKeyErrors,
  labelValueErrors,
  nameErrors,
  namePrefixErrors,
  type NameRule,
  qualifiedNameErrors,
} from '#kube/names.ts';

export const MAX_ANNOTATIONS_BYTES = 262144;
export const FIELD_IMMUTABLE = 'field is immutable';

/** The finalizers that a propagation policy sets, for the garbage collector. */
export const ORPHAN_FINALIZER = 'orphan';
export const FOREGROUND_FINALIZER = 'foregroundDeletion';
const MAX_FIELD_MANAGER_LENGTH = 128;

interface MetadataRules {
  readonly namespaced: boolean;
  readonly nameRule: NameRule;
}

/** Validates new and changed objects. The name must already be generated. */
export function validateMetadata({ metadata }: KubeObject, { namespaced, nameRule }: MetadataRules): FieldError[] {
  const errors: FieldError[] = [];
  checkName(metadata, nameRule, errors);
  checkNamespace(metadata.namespace ?? '', namespaced, errors);
  if ((metadata.generation ?? 0) < 0) {
    errors.push(invalidValue('metadata.generation', metadata.generation, 'must be greater than or equal to 0'));
  }
  checkLabels(metadata.labels ?? {}, errors);
  checkAnnotations(metadata.annotations ?? {}, errors);
  checkOwners(metadata.ownerReferences ?? [], errors);
  checkFinalizers(metadata.finalizers ?? [], errors);
  checkManagedFields(metadata.managedFields ?? [], errors);
  return errors;
}

/** Validates changes of an object that passed validateMetadata. */
export function validateMetadataUpdate({ metadata }: KubeObject, old: KubeObject): FieldError[] {
  const before = old.metadata;
  const errors: FieldError[] = [];
  if (isSet(before.deletionTimestamp)) checkNewFinalizers(metadata.finalizers ?? [], before.finalizers ?? [], errors);
  if ((metadata.generation ?? 0) < (before.generation ?? 0)) {
    errors.push(invalidValue('metadata.generation', metadata.generation ?? 0, 'must not be decremented'));
  }
  for (const field of ['name', 'namespace', 'uid'] as const) {
    if ((metadata[field] ?? '') !== (before[field] ?? '')) errors.push(immutable(field, metadata[field] ?? ''));
  }
  for (const field of ['creationTimestamp', 'deletionTimestamp'] as const) {
    if (!sameTime(metadata[field], before[field])) errors.push(immutable(field, metadata[field] ?? 'null'));
  }
  const grace = metadata.deletionGracePeriodSeconds ?? null;
  if (grace !== (before.deletionGracePeriodSeconds ?? null)) {
    errors.push(immutable('deletionGracePeriodSeconds', grace ?? 'null'));
  }
  return errors;
}

const isSet = <T>(value: T | null | undefined): value is T => value !== undefined && value !== null;

const immutable = (field: string, value: unknown) => invalidValue(`metadata.${field}`, value, FIELD_IMMUTABLE);

/** Compares times: `2026-01-01T00:00:00Z` and `2026-01-01T01:00:00+01:00` are equal. */
function sameTime(a: string | null | undefined, b: string | null | undefined): boolean {
  if ((a ?? null) === (b ?? null)) return true;
  return isSet(a) && isSet(b) && Date.parse(a) === Date.parse(b);
}

function checkName({ name, generateName }: ObjectMeta, rule: NameRule, errors: FieldError[]): void {
  if (generateName) {
    for (const message of namePrefixErrors(rule, generateName)) {
      errors.push(invalidValue('metadata.generateName', generateName, message));
    }
  }
  if (!name) {
    errors.push(requiredValue('metadata.name', 'name or generateName is required'));
    return;
  }
  for (const message of nameErrors(rule, name)) errors.push(invalidValue('metadata.name', name, message));
}

function checkNamespace(namespace: string, namespaced: boolean, errors: FieldError[]): void {
  if (!namespaced) {
    if (namespace !== '') errors.push(forbiddenField('metadata.namespace', 'not allowed on this type'));
  } else if (namespace === '') {
    errors.push(requiredValue('metadata.namespace'));
  } else {
    for (const message of nameErrors('label', namespace)) {
      errors.push(invalidValue('metadata.namespace', namespace, message));
    }
  }
}

/** Indexes by label hold an entry for each; no object has as many in practice. */
const MAX_LABELS = 4096;

function checkLabels(labels: Record<string, string>, errors: FieldError[]): void {
  const entries = Object.entries(labels);
  if (entries.length > MAX_LABELS) {
    errors.push(tooMany('metadata.labels', entries.length, MAX_LABELS));
    return;
  }
  for (const [key, value] of entries) {
    for (const message of labelKeyErrors(key)) errors.push(invalidValue('metadata.labels', key, message));
    for (const message of labelValueErrors(value ?? '')) errors.push(invalidValue('metadata.labels', value, message));
  }
}

function checkAnnotations(annotations: Record<string, string>, errors: FieldError[]): void {
  let bytes = 0;
  for (const [key, value] of Object.entries(annotations)) {
    for (const message of annotationKeyErrors(key)) errors.push(invalidValue('metadata.annotations', key, message));
    bytes += Buffer.byteLength(key) + Buffer.byteLength(value ?? '');
  }
  if (bytes > MAX_ANNOTATIONS_BYTES) errors.push(tooLong('metadata.annotations', MAX_ANNOTATIONS_BYTES));
}

function checkOwners(owners: readonly OwnerReference[], errors: FieldError[]): void {
  let controller: string | undefined;
  let hasTwoControllers = false;
  for (const [index, owner] of owners.entries()) {
    const path = `metadata.ownerReferences[${index}]`;
    for (const field of ['apiVersion', 'kind', 'name', 'uid'] as const) {
      if (!owner[field]) errors.push(requiredValue(`${path}.${field}`, 'must not be empty'));
    }
    if (owner.apiVersion && !/^[^/]+(\/[^/]+)?$/.test(owner.apiVersion)) {
      const detail = 'must be <group>/<version> or <version>';
      errors.push(invalidValue(`${path}.apiVersion`, owner.apiVersion, detail));
    }
    if (owner.apiVersion === 'v1' && owner.kind === 'Event') {
      errors.push(invalidValue(path, owner, '/v1, Kind=Event is disallowed from being an owner'));
    }
    if (owner.controller !== true) continue;
    const name = `${owner.kind}/${owner.name}`;
    if (controller === undefined) controller = name;
    else if (!hasTwoControllers) {
      // Reported once: the error contains the whole list.
      hasTwoControllers = true;
      const detail = `Only one reference can have Controller set to true. Found "true" in references for ${controller} and ${name}`;
      errors.push(invalidValue('metadata.ownerReferences', owners, detail));
    }
  }
}

function checkFinalizers(finalizers: readonly string[], errors: FieldError[]): void {
  for (const finalizer of finalizers) {
    for (const message of qualifiedNameErrors(finalizer)) {
      errors.push(invalidValue('metadata.finalizers', finalizer, message));
    }
  }
  if (finalizers.includes(ORPHAN_FINALIZER) && finalizers.includes(FOREGROUND_FINALIZER)) {
    const detail = `finalizer ${ORPHAN_FINALIZER} and ${FOREGROUND_FINALIZER} cannot be both set`;
    errors.push(invalidValue('metadata.finalizers', finalizers, detail));
  }
}

function checkNewFinalizers(finalizers: readonly string[], before: readonly string[], errors: FieldError[]): void {
  const added = [...new Set(finalizers).difference(new Set(before))].toSorted();
  if (added.length === 0) return;
  const shown = `[]string{${added.map((finalizer) => JSON.stringify(finalizer)).join(', ')}}`;
  const detail = `no new finalizers can be added if the object is being deleted, found new finalizers ${shown}`;
  errors.push(forbiddenField('metadata.finalizers', detail));
}

function checkManagedFields(entries: readonly ManagedFieldsEntry[], errors: FieldError[]): void {
  for (const [index, { operation, fieldsType, manager }] of entries.entries()) {
    const path = `metadata.managedFields[${index}]`;
    if (operation !== 'Apply' && operation !== 'Update') {
      errors.push(invalidValue(`${path}.operation`, operation ?? '', 'must be `Apply` or `Update`'));
    }
    if (fieldsType && fieldsType !== 'FieldsV1') {
      errors.push(invalidValue(`${path}.fieldsType`, fieldsType, 'must be `FieldsV1`'));
    }
    if (manager && manager.length > MAX_FIELD_MANAGER_LENGTH) {
      errors.push(tooLong(`${path}.manager`, MAX_FIELD_MANAGER_LENGTH));
    }
  }
}
