/** What we add to objects that are made. They come before their schema was asked: nothing about them is certain. */
import { fillFirmware } from '#admission/firmware-identity.ts';
import type { AdmissionRequest, Answer, PatchOperation } from '#admission/review.ts';
import { VMI_FINALIZER } from '#api/names.ts';
import { isRecord, type KubeObject } from '#kube/meta.ts';

export interface MutationParts {
  /** A random one (v4). */
  newUuid(): string;
}

export function mutateVirtualMachine(request: AdmissionRequest, { newUuid }: MutationParts): Answer {
  const vm = newObject(request);
  if (vm === undefined) return {};
  const domain = at(vm, 'spec', 'template', 'spec', 'domain');
  return { patch: fillFirmware(domain, '/spec/template/spec/domain', ['uuid', 'serial'], newUuid) };
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
