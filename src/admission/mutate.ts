/** What we write into objects ourselves. They come before their schema was asked: nothing about them is certain. */
import { fillFirmware } from '#admission/firmware-identity.ts';
import { noteProtection } from '#admission/protection-notes.ts';
import type { AdmissionRequest, Answer, PatchOperation } from '#admission/review.ts';
import { VMI_FINALIZER } from '#api/names.ts';
import { isRecord, type KubeObject } from '#kube/meta.ts';

export interface MutationParts {
  /** A random one (v4). */
  newUuid(): string;
  /** As in objects: `2026-01-01T00:00:00Z`. */
  now(): string;
}

export function mutateVirtualMachine(request: AdmissionRequest, { newUuid, now }: MutationParts): Answer {
  const domain = at(newObject(request), 'spec', 'template', 'spec', 'domain');
  return {
    patch: [
      ...noteProtection(request, now()),
      ...fillFirmware(domain, '/spec/template/spec/domain', ['uuid', 'serial'], newUuid),
    ],
  };
}

/** KubeVirt gives stand-alone instances no serial. */
export function mutateVirtualMachineInstance(request: AdmissionRequest, { newUuid }: MutationParts): Answer {
  const vmi = newObject(request);
  if (vmi === undefined) return {};
  return {
    patch: [...addFinalizer(vmi), ...fillFirmware(at(vmi, 'spec', 'domain'), '/spec/domain', ['uuid'], newUuid)],
  };
}

/** One that is being deleted, or changed, stays as it is. */
function newObject({ operation, object }: AdmissionRequest): KubeObject | undefined {
  if (operation !== 'CREATE' || object?.metadata.deletionTimestamp !== undefined) return undefined;
  return object;
}

function addFinalizer({ metadata }: KubeObject): PatchOperation[] {
  const { finalizers } = metadata;
  if (!Array.isArray(finalizers)) return [{ op: 'add', path: '/metadata/finalizers', value: [VMI_FINALIZER] }];
  if (finalizers.includes(VMI_FINALIZER)) return [];
  return [{ op: 'add', path: '/metadata/finalizers/-', value: VMI_FINALIZER }];
}

function at(value: unknown, ...path: readonly string[]): unknown {
  let here = value;
  for (const field of path) here = isRecord(here) ? here[field] : undefined;
  return here;
}
