/**
 * The time since which every VirtualMachine gets a random firmware UUID at creation: an annotation of the definition of
 * VirtualMachines. The operator writes it once, when the mutating webhook configuration exists, and never changes or
 * removes it. It is deleted only with the definition, and then all VMs are gone as well.
 *
 * A VM that is stored without a UUID is either older than that time, and keeps its legacy UUID; or it is newer, and the
 * webhook was bypassed (an API server that did not know the configuration yet, or a user who removed it): then it gets
 * a random one.
 */
import { createHash } from 'node:crypto';
import { legacyUuid } from '#api/identity/legacy-uuid.ts';
import { VIRTUAL_MACHINES, type VirtualMachine } from '#api/virtual-machine/kind.ts';
import { groupResource, type KubeObject, type Stored } from '#kube/meta.ts';

export const UUID_ADMISSION_ANNOTATION = 'selfsame.io/uuid-admission-since';
/** The name of the definition that has the annotation. */
export const VM_DEFINITION = groupResource(VIRTUAL_MACHINES);

/** Returns the annotation of the definition of VirtualMachines, in RFC 3339. */
export function uuidAdmissionSince(definition: Pick<KubeObject, 'metadata'> | undefined): string | undefined {
  return definition?.metadata.annotations?.[UUID_ADMISSION_ANNOTATION];
}

/** Reports whether the VM was created after UUIDs became random. False if either time cannot be parsed. */
export function isNewerThanAdmission({ metadata }: Stored<VirtualMachine>, since: string | undefined): boolean {
  return Date.parse(metadata.creationTimestamp) >= Date.parse(since ?? '');
}

/** Returns the firmware UUID of a VM that was stored without one and has not run yet. Always the same for one VM. */
export function deriveMissingUuid(vm: Stored<VirtualMachine>, since: string | undefined): string {
  return isNewerThanAdmission(vm, since) ? uuidFromUid(vm.metadata.uid) : legacyUuid(vm.metadata.name);
}

/** Derives a version 4 UUID from the uid, which the API server generated at random. */
function uuidFromUid(uid: string): string {
  const bytes = createHash('sha256').update(`firmware uuid of ${uid}`).digest().subarray(0, 16);
  bytes.writeUInt8((bytes.readUInt8(6) & 0x0f) | 0x40, 6);
  bytes.writeUInt8((bytes.readUInt8(8) & 0x3f) | 0x80, 8);
  return bytes.toString('hex').replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-');
}
