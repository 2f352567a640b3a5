/**
 * Writes the firmware uuid into the template of a VM that was stored without one: that of its record or instance,
 * otherwise the legacy uuid, or a random one if the VM is younger than uuid admission (api/identity/uuid-admission.ts). A serial
 * that the VM had is restored as well; serials are never generated. Pure.
 */
import { legacyUuid } from '#api/identity/legacy-uuid.ts';
import { isNewerThanAdmission } from '#api/identity/uuid-admission.ts';
import { VIRTUAL_MACHINES, type VirtualMachine, templateSpec } from '#api/virtual-machine/kind.ts';
import { isOrphan } from '#controllers/vm/adopt-instance.ts';
import type { VmFailure, VmWorld } from '#controllers/vm/vm-world.ts';
import { resolveIdentity, knownIdentity, ownRecord } from '#controllers/vm/identity/identity.ts';
import { isDeleting, type ObjectMeta, type Stored } from '#kube/meta.ts';
import type { Change } from '#runtime/plan.ts';

const UUID_PERSISTED = 'FirmwareUUIDPersisted';
const SERIAL_PERSISTED = 'FirmwareSerialPersisted';
const UUID_ERROR = 'FirmwareUUIDError';

interface MissingFirmware {
  readonly values: { readonly uuid?: string; readonly serial?: string };
  readonly why: string;
}

/** Returns the firmware values that the template lacks, or undefined if it is complete. */
export function missingFirmware(world: VmWorld): MissingFirmware | undefined {
  const { vm, foreignVmi } = world;
  if (isDeleting(vm)) return undefined;
  // The VM will adopt this instance and then has its identity.
  if (foreignVmi !== undefined && isOrphan(foreignVmi)) return undefined;
  const declared = templateSpec(vm).domain.firmware;
  const { uuid, serial } = resolveIdentity(vm, knownIdentity(world), world).firmware ?? {};
  const restored = declared?.serial || !serial ? {} : { serial };
  if (!declared?.uuid) {
    return { values: { uuid, ...restored }, why: `Persisted the firmware uuid ${uuid}, ${describeOrigin(world)}` };
  }
  if (restored.serial === undefined) return undefined;
  return { values: restored, why: `Persisted the firmware serial ${serial}, which the virtual machine had before` };
}

function describeOrigin(world: VmWorld): string {
  if (ownRecord(world)?.spec.firmware?.uuid) return 'which its identity record has';
  if (world.vmi?.spec.domain.firmware?.uuid) return 'which its instance has';
  if (isNewerThanAdmission(world.vm, world.uuidAdmissionSince)) return 'which is new: no webhook has set one';
  return 'which follows from its name as in older versions';
}

interface VmPatch {
  readonly metadata?: Pick<ObjectMeta, 'finalizers' | 'annotations'>;
  readonly domain?: object;
  readonly firmware?: MissingFirmware | undefined;
}

/** Returns one patch of the VM, on the observed resourceVersion. `why` is used only if no firmware is written. */
export function patchVm(vm: Stored<VirtualMachine>, { metadata, domain, firmware }: VmPatch, why: string): Change {
  const { name, namespace, uid, resourceVersion } = vm.metadata;
  const filled = { ...domain, ...(firmware === undefined ? {} : { firmware: firmware.values }) };
  const body = {
    metadata: { resourceVersion, ...metadata },
    ...(Object.keys(filled).length === 0 ? {} : { spec: { template: { spec: { domain: filled } } } }),
  };
  const explanation =
    firmware === undefined
      ? { why }
      : { why: firmware.why, reason: firmware.values.uuid === undefined ? SERIAL_PERSISTED : UUID_PERSISTED };
  const patch = { type: 'merge', body } as const;
  return { do: 'patch', type: VIRTUAL_MACHINES, name: { name, namespace }, uid, patch, ...explanation };
}

/** Returns the failure of a change that persists firmware, or undefined for other changes. */
export function firmwareFailure({ reason }: Change, cause: string): VmFailure | undefined {
  if (reason !== UUID_PERSISTED && reason !== SERIAL_PERSISTED) return undefined;
  const what = reason === UUID_PERSISTED ? 'uuid' : 'serial';
  return { reason: UUID_ERROR, message: `Failure while persisting the firmware ${what}: ${cause}` };
}

/** Reports whether the change persists a legacy uuid, for the metric. */
export function persistsLegacyUuid(change: Change): boolean {
  if (change.do !== 'patch' || change.reason !== UUID_PERSISTED) return false;
  const { spec } = change.patch.body as Pick<VirtualMachine, 'spec'>;
  return templateSpec({ spec }).domain.firmware?.uuid === legacyUuid(change.name.name);
}
