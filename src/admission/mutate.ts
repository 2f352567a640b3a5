/**
 * The mutating webhooks. Objects have not been validated by their schema yet, so nothing about their shape is certain.
 */
import { patchAnnotations } from '#admission/annotation-patch.ts';
import { recordIdentityEdits } from '#admission/identity-edits.ts';
import { keepIdentity } from '#admission/keep-identity.ts';
import { recordProtection } from '#admission/protection-annotations.ts';
import type { ReviewRequest, AdmissionDecision, PatchOperation } from '#admission/review.ts';
import type { Configuration } from '#api/kubevirt/configuration.ts';
import { MIGRATION_FINALIZER, VMI_FINALIZER, VMI_NAME_LABEL } from '#api/names.ts';
import { applyJsonPatch } from '#kube/patches/json-patch.ts';
import { formatPointer } from '#kube/patches/json-pointer.ts';
import { isRecord, type KubeObject } from '#kube/meta.ts';
import { labelValueErrors } from '#kube/names.ts';

export interface MutationParts {
  /** Returns a random UUID (version 4). */
  newUuid(): string;
  /** Returns the current time as in objects: `2026-01-01T00:00:00Z`. */
  now(): string;
  readonly lookup: { configuration(): Pick<Configuration, 'defaultMachineType'> };
}

export function mutateVirtualMachine(request: ReviewRequest, { newUuid, now }: MutationParts): AdmissionDecision {
  const domain = valueAt(newObject(request), 'spec', 'template', 'spec', 'domain');
  const kept = keepIdentity(request);
  return {
    patch: [
      ...annotate(withPatch(request, kept.patch), now()),
      ...fillFirmware(domain, '/spec/template/spec/domain', ['uuid', 'serial'], newUuid),
      ...kept.patch,
    ],
    warnings: kept.warnings,
  };
}

/**
 * Returns the request with its object after the patch, so that a field that a replacement omits does not count as
 * changed.
 */
function withPatch(request: ReviewRequest, patch: readonly PatchOperation[]): ReviewRequest {
  if (patch.length === 0) return request;
  return { ...request, object: applyJsonPatch(request.object, patch) as KubeObject };
}

/** Builds one patch for all annotations: two patches that add a missing map would undo each other. */
function annotate(request: ReviewRequest, now: string): PatchOperation[] {
  if (request.object === undefined) return [];
  return patchAnnotations(request.object, [...recordProtection(request, now), ...recordIdentityEdits(request, now)]);
}

/** Fills in missing fields; instances of VMs have them already. As in KubeVirt, stand-alone instances get no serial. */
export function mutateVirtualMachineInstance(
  request: ReviewRequest,
  { newUuid, lookup }: MutationParts,
): AdmissionDecision {
  const vmi = newObject(request);
  if (vmi === undefined) return {};
  return {
    patch: [
      ...addFinalizer(vmi, VMI_FINALIZER),
      ...fillFirmware(valueAt(vmi, 'spec', 'domain'), '/spec/domain', ['uuid'], newUuid),
      ...fillMachineType(valueAt(vmi, 'spec', 'domain'), lookup.configuration().defaultMachineType),
    ],
  };
}

export function mutateVirtualMachineInstanceMigration(request: ReviewRequest): AdmissionDecision {
  const migration = newObject(request);
  if (migration === undefined) return {};
  return { patch: [...addFinalizer(migration, MIGRATION_FINALIZER), ...labelInstance(migration)] };
}

/** Returns the object of a create request; undefined for updates and for objects that are being deleted. */
function newObject({ operation, object }: ReviewRequest): KubeObject | undefined {
  if (operation !== 'CREATE' || object?.metadata.deletionTimestamp !== undefined) return undefined;
  return object;
}

/** Fills in a type that is null, empty or absent. Values of a wrong type are left for the schema to refuse. */
function fillMachineType(domain: unknown, type: string): PatchOperation[] {
  if (!isRecord(domain)) return [];
  const machine = domain['machine'] ?? undefined;
  if (machine === undefined) return [{ op: 'add', path: '/spec/domain/machine', value: { type } }];
  if (!isRecord(machine) || (machine['type'] ?? '') !== '') return [];
  return [{ op: 'add', path: '/spec/domain/machine/type', value: type }];
}

function addFinalizer({ metadata }: KubeObject, finalizer: string): PatchOperation[] {
  const { finalizers } = metadata;
  if (!Array.isArray(finalizers)) return [{ op: 'add', path: '/metadata/finalizers', value: [finalizer] }];
  if (finalizers.includes(finalizer)) return [];
  return [{ op: 'add', path: '/metadata/finalizers/-', value: finalizer }];
}

/**
 * Adds the label with the name of the instance, by which its migrations are found. Names may be too long for a label.
 */
function labelInstance(migration: KubeObject): PatchOperation[] {
  const name = valueAt(migration, 'spec', 'vmiName');
  if (typeof name !== 'string' || name === '' || labelValueErrors(name).length > 0) return [];
  const labels: unknown = migration.metadata.labels ?? undefined;
  if (labels === undefined) return [{ op: 'add', path: '/metadata/labels', value: { [VMI_NAME_LABEL]: name } }];
  if (!isRecord(labels) || labels[VMI_NAME_LABEL] === name) return [];
  return [{ op: 'add', path: formatPointer(['metadata', 'labels', VMI_NAME_LABEL]), value: name }];
}

function valueAt(value: unknown, ...path: readonly string[]): unknown {
  let current = value;
  for (const field of path) current = isRecord(current) ? current[field] : undefined;
  return current;
}

/**
 * Returns the patch that fills in missing fields of `domain.firmware`. `path` is the JSON pointer of the domain. Values
 * of a wrong type are left unchanged: the schema refuses them.
 */
function fillFirmware(
  domain: unknown,
  path: string,
  fields: readonly ('uuid' | 'serial')[],
  newUuid: () => string,
): PatchOperation[] {
  if (!isRecord(domain)) return [];
  const { firmware } = domain;
  if (firmware === undefined || firmware === null) {
    const value = Object.fromEntries(fields.map((field) => [field, newUuid()]));
    return [{ op: 'add', path: `${path}/firmware`, value }];
  }
  if (!isRecord(firmware)) return [];
  return fields
    .filter((field) => isEmpty(firmware[field]))
    .map((field) => ({ op: 'add', path: `${path}/firmware/${field}`, value: newUuid() }));
}

const isEmpty = (value: unknown) => value === undefined || value === null || value === '';
