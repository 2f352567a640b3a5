/** The mutating webhooks. Objects have not been validated by their schema yet, so nothing about their shape is certain. */
import { patchNotes } from '#admission/annotation-patch.ts';
import { fillFirmware } from '#admission/firmware-identity.ts';
import { editNotes } from '#admission/identity-edits.ts';
import { keepIdentity } from '#admission/keep-identity.ts';
import { protectionNotes } from '#admission/protection-annotations.ts';
import type { AdmissionRequest, Answer, PatchOperation } from '#admission/review.ts';
import type { Configuration } from '#api/kubevirt/configuration.ts';
import { MIGRATION_FINALIZER, VMI_FINALIZER, VMI_NAME_LABEL } from '#api/names.ts';
import { applyJsonPatch } from '#kube/json-patch.ts';
import { formatPointer } from '#kube/json-pointer.ts';
import { isRecord, type KubeObject } from '#kube/meta.ts';
import { labelValueErrors } from '#kube/names.ts';

export interface MutationParts {
  /** Returns a random UUID (version 4). */
  newUuid(): string;
  /** Returns the current time as in objects: `2026-01-01T00:00:00Z`. */
  now(): string;
  readonly lookup: { configuration(): Pick<Configuration, 'defaultMachineType'> };
}

export function mutateVirtualMachine(request: AdmissionRequest, { newUuid, now }: MutationParts): Answer {
  const domain = at(newObject(request), 'spec', 'template', 'spec', 'domain');
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

/** Returns the request with its object after the patch, so that a field that a replacement omits does not count as changed. */
function withPatch(request: AdmissionRequest, patch: readonly PatchOperation[]): AdmissionRequest {
  if (patch.length === 0) return request;
  return { ...request, object: applyJsonPatch(request.object, patch) as KubeObject };
}

/** Builds one patch for all annotations: two patches that add a missing map would undo each other. */
function annotate(request: AdmissionRequest, now: string): PatchOperation[] {
  if (request.object === undefined) return [];
  return patchNotes(request.object, [...protectionNotes(request, now), ...editNotes(request, now)]);
}

/** Fills in missing fields; instances of VMs have them already. As in KubeVirt, stand-alone instances get no serial. */
export function mutateVirtualMachineInstance(request: AdmissionRequest, { newUuid, lookup }: MutationParts): Answer {
  const vmi = newObject(request);
  if (vmi === undefined) return {};
  return {
    patch: [
      ...addFinalizer(vmi, VMI_FINALIZER),
      ...fillFirmware(at(vmi, 'spec', 'domain'), '/spec/domain', ['uuid'], newUuid),
      ...fillMachineType(at(vmi, 'spec', 'domain'), lookup.configuration().defaultMachineType),
    ],
  };
}

export function mutateVirtualMachineInstanceMigration(request: AdmissionRequest): Answer {
  const migration = newObject(request);
  if (migration === undefined) return {};
  return { patch: [...addFinalizer(migration, MIGRATION_FINALIZER), ...nameInstance(migration)] };
}

/** Returns the object of a create request; undefined for updates and for objects that are being deleted. */
function newObject({ operation, object }: AdmissionRequest): KubeObject | undefined {
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

/** Adds the label with the name of the instance, by which its migrations are found. Names may be too long for a label. */
function nameInstance(migration: KubeObject): PatchOperation[] {
  const name = at(migration, 'spec', 'vmiName');
  if (typeof name !== 'string' || name === '' || labelValueErrors(name).length > 0) return [];
  const labels: unknown = migration.metadata.labels ?? undefined;
  if (labels === undefined) return [{ op: 'add', path: '/metadata/labels', value: { [VMI_NAME_LABEL]: name } }];
  if (!isRecord(labels) || labels[VMI_NAME_LABEL] === name) return [];
  return [{ op: 'add', path: formatPointer(['metadata', 'labels', VMI_NAME_LABEL]), value: name }];
}

function at(value: unknown, ...path: readonly string[]): unknown {
  let current = value;
  for (const field of path) current = isRecord(current) ? current[field] : undefined;
  return current;
}
