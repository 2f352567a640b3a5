/**
 * Writes the firmware uuid into the template of a VM that was stored without one: the one of its record or its instance,
 * else the one of the old, name-based rule, or a random one where the VM is younger than uuid admission
 * (api/uuid-admission.ts). A serial that the VM had is written back as well; none is made up. Pure.
 */
import { legacyUuid } from '#api/legacy-uuid.ts';
import { isYoungerThanAdmission } from '#api/uuid-admission.ts';
import { VIRTUAL_MACHINES, type VirtualMachine } from '#api/virtual-machine/kind.ts';
import { isOrphan } from '#controllers/vm/adopt.ts';
import type { Trouble } from '#controllers/vm/conditions.ts';
import { identityOf, knownIdentity, ownRecord } from '#controllers/vm/identity.ts';
import { templateSpec, type VmWorld } from '#controllers/vm/vm-world.ts';
import { isDeleting, type ObjectMeta, type Stored } from '#kube/meta.ts';
import type { Change } from '#runtime/plan.ts';

export const UUID_PERSISTED = 'FirmwareUUIDPersisted';
export const SERIAL_PERSISTED = 'FirmwareSerialPersisted';
export const UUID_ERROR = 'FirmwareUUIDError';

export interface MissingFirmware {
  readonly values: { readonly uuid?: string; readonly serial?: string };
  readonly why: string;
}

/** What the template is to say and does not; undefined where it says all. */
export function missingFirmware(world: VmWorld): MissingFirmware | undefined {
  const { vm, stranger } = world;
  if (isDeleting(vm)) return undefined;
  // Once it is adopted, the VM is who that instance is.
  if (stranger !== undefined && isOrphan(stranger)) return undefined;
  const said = templateSpec(vm).domain.firmware;
  const { uuid, serial } = identityOf(vm, knownIdentity(world), world).firmware ?? {};
  const restored = said?.serial || !serial ? {} : { serial };
  if (!said?.uuid) {
    return { values: { uuid, ...restored }, why: `Persisted the firmware uuid ${uuid}, ${originOf(world)}` };
  }
  if (restored.serial === undefined) return undefined;
  return { values: restored, why: `Persisted the firmware serial ${serial}, which the virtual machine has had` };
}

function originOf(world: VmWorld): string {
  if (ownRecord(world)?.spec.firmware?.uuid) return 'which is that of its identity record';
  if (world.vmi?.spec.domain.firmware?.uuid) return 'which is that of its instance';
  if (isYoungerThanAdmission(world.vm, world.uuidAdmissionSince)) return 'which is new: no webhook has set one';
  return 'which follows from its name as in older versions';
}

export interface VmPatch {
  readonly metadata?: Pick<ObjectMeta, 'finalizers' | 'annotations'>;
  readonly domain?: object;
  readonly firmware?: MissingFirmware | undefined;
}

/** One write on the state that was seen; what it does not name stays. `why` counts where no firmware is told of. */
export function patchVm(vm: Stored<VirtualMachine>, { metadata, domain, firmware }: VmPatch, why: string): Change {
  const { name, namespace, uid, resourceVersion } = vm.metadata;
  const filled = { ...domain, ...(firmware === undefined ? {} : { firmware: firmware.values }) };
  const body = {
    metadata: { resourceVersion, ...metadata },
    ...(Object.keys(filled).length === 0 ? {} : { spec: { template: { spec: { domain: filled } } } }),
  };
  const told =
    firmware === undefined
      ? { why }
      : { why: firmware.why, reason: firmware.values.uuid === undefined ? SERIAL_PERSISTED : UUID_PERSISTED };
  const patch = { type: 'merge', body } as const;
  return { do: 'patch', type: VIRTUAL_MACHINES, name: { name, namespace }, uid, patch, ...told };
}

/** Undefined where the change has nothing to do with it. */
export function firmwareTrouble({ reason }: Change, cause: string): Trouble | undefined {
  if (reason !== UUID_PERSISTED && reason !== SERIAL_PERSISTED) return undefined;
  const what = reason === UUID_PERSISTED ? 'uuid' : 'serial';
  return { reason: UUID_ERROR, message: `Failure while persisting the firmware ${what}: ${cause}` };
}

/** Whether the old, name-based rule was used once more. */
export function persistsLegacyUuid(change: Change): boolean {
  if (change.do !== 'patch' || change.reason !== UUID_PERSISTED) return false;
  const { spec } = change.patch.body as Pick<VirtualMachine, 'spec'>;
  return templateSpec({ spec }).domain.firmware?.uuid === legacyUuid(change.name.name);
}
