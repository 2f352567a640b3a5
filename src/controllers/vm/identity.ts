/**
 * Who a VM is: firmware uuid and serial, and the MAC addresses of its interfaces. What the template says
 * counts, then what the record says, then what the instance has, and only then something is made. What is made follows
 * from the VM's uid and name, so that making it again after a lost write makes the same. Pure.
 */
import { derivedMac } from '#api/derived-mac.ts';
import type { Smbios } from '#api/domain/chassis.ts';
import { readableSmbios, readSmbios } from '#api/smbios-annotation.ts';
import { RECORD_FINALIZER } from '#api/names.ts';
import type { VirtualMachine } from '#api/virtual-machine/kind.ts';
import { ownedByVm } from '#api/virtual-machine/owner.ts';
import {
  type IdentitySpec,
  VIRTUAL_MACHINE_IDENTITIES,
  type VirtualMachineIdentity,
} from '#api/virtual-machine-identity/kind.ts';
import { isVanishing } from '#api/virtual-machine-identity/record-state.ts';
import { restoredFrom } from '#api/virtual-machine-identity/restored-vm.ts';
import { isOfVm, missingHold } from '#controllers/vm/hold-record.ts';
import { interfacesOf } from '#api/attached-interfaces.ts';
import { uuidOfUnseen } from '#api/uuid-admission.ts';
import { templateSpec, type VmWorld } from '#controllers/vm/vm-world.ts';
import { deepEqual } from '#kube/deep.ts';
import { apiVersionOf, controllerUid, isDeleting, type Stored } from '#kube/meta.ts';
import type { Change } from '#runtime/plan.ts';

/** What decides about a VM without a record and without an instance. */
export interface NewIdentity {
  /** What new VMs say of their maker; a VM that has run keeps what it said. */
  readonly smbios?: Smbios | undefined;
  readonly uuidAdmissionSince?: string | undefined;
}

/** Returns the identity of a VM; `known` is what its record or its instance says. */
export function identityOf(
  vm: Stored<VirtualMachine>,
  known: IdentitySpec | undefined,
  fresh: NewIdentity = {},
): IdentitySpec {
  const spec = templateSpec(vm);
  const uuid = spec.domain.firmware?.uuid || known?.firmware?.uuid || uuidOfUnseen(vm, fresh.uuidAdmissionSince);
  const serial = spec.domain.firmware?.serial || known?.firmware?.serial;
  const smbios = known === undefined ? readableSmbios(fresh.smbios) : known.smbios;
  // An address that the template named before and names no more is not kept.
  const made = known?.interfaces?.filter(({ fromTemplate }) => fromTemplate !== true) ?? [];
  const macs = new Map(made.map(({ name, macAddress }) => [name, macAddress]));
  // A restored VM without its record still gets the MAC addresses that were derived from the uid of the original.
  const owner = restoredFrom(vm) ?? vm.metadata.uid;
  const interfaces = interfacesOf(spec).map(({ name, macAddress }) =>
    macAddress
      ? { name, macAddress: plainMac(macAddress), fromTemplate: true }
      : { name, macAddress: macs.get(name) ?? derivedMac(owner, name) },
  );
  return {
    firmware: { uuid, ...(serial ? { serial } : {}) },
    ...(smbios === undefined ? {} : { smbios }),
    ...(interfaces.length === 0 ? {} : { interfaces }),
  };
}

/** Returns the address as records have it: in lower case, with colons. */
const plainMac = (text: string) => text.toLowerCase().replaceAll('-', ':');

/** Returns the record if it is this VM's or can become so. */
export function ownRecord({
  vm,
  identity,
}: Pick<VmWorld, 'vm' | 'identity'>): Stored<VirtualMachineIdentity> | undefined {
  return identity === undefined || isForeign(vm, identity) ? undefined : identity;
}

/**
 * Returns the identity that the VM has had: as on record; without a record as the instance has it, then as the newest
 * snapshot has it. MAC addresses of a record count as a whole: one that it leaves out was the template's own.
 */
export function knownIdentity(world: VmWorld): IdentitySpec | undefined {
  const { vmi, lost } = world;
  const recorded: IdentitySpec | undefined = ownRecord(world)?.spec;
  const saved = lost?.snapshot?.identity.spec;
  if (vmi === undefined) return recorded ?? saved;
  const { uuid, serial } = vmi.spec.domain.firmware ?? {};
  const firmware = { uuid: recorded?.firmware?.uuid || uuid, serial: recorded?.firmware?.serial || serial };
  if (recorded !== undefined) return { ...recorded, firmware };
  const interfaces = interfacesOf(vmi.spec).flatMap(({ name, macAddress }) =>
    macAddress ? [{ name, macAddress }] : [],
  );
  const attached = new Set(interfaces.map(({ name }) => name));
  const detached = saved?.interfaces?.filter(({ name }) => !attached.has(name)) ?? [];
  const smbios = readSmbios(vmi.metadata.annotations);
  return { firmware, interfaces: [...interfaces, ...detached], ...(smbios && { smbios }) };
}

/**
 * Reports whether the record is not the VM's: another VM of this name has left it behind, and the garbage collector will
 * delete it. A record of this VM that is being deleted stays usable while our finalizer holds it.
 */
export function isForeign(vm: Stored<VirtualMachine>, identity: Stored<VirtualMachineIdentity>): boolean {
  if (isOfVm(identity, vm)) return isVanishing(identity);
  return isDeleting(identity) || controllerUid(identity) !== undefined;
}

/**
 * Returns the write that makes the VM the owner of a record that an orphaned VM left behind, or that was restored with
 * this VM from a backup.
 */
export function adoptRecord(world: VmWorld): Change[] {
  const { vm } = world;
  const record = ownRecord(world);
  if (record === undefined || controllerUid(record) === vm.metadata.uid) return [];
  const { name, namespace, uid, resourceVersion } = record.metadata;
  const body = { metadata: { resourceVersion, ...missingHold(vm, record) } };
  const why = `Adopted the identity record of an earlier virtual machine ${name}`;
  const patch = { type: 'merge', body } as const;
  const type = VIRTUAL_MACHINE_IDENTITIES;
  return [{ do: 'patch', type, name: { name, namespace }, uid, patch, reason: 'IdentityRecordAdopted', why }];
}

/** Writes the MAC addresses of these interfaces into the record, and changes nothing else in it. */
export function recordMacs(world: VmWorld, names: readonly string[]): Change[] {
  const record = ownRecord(world);
  if (record === undefined || names.length === 0) return [];
  const { interfaces: made = [] } = identityOf(world.vm, knownIdentity(world), world);
  const { interfaces: known = [] } = record.spec;
  const missing = made.filter((one) => names.includes(one.name) && !known.some((other) => deepEqual(one, other)));
  if (missing.length === 0) return [];
  const kept = known.filter(({ name }) => !missing.some((one) => one.name === name));
  const { name, namespace, uid, resourceVersion } = record.metadata;
  const patch = {
    type: 'merge',
    body: { metadata: { resourceVersion }, spec: { interfaces: [...kept, ...missing] } },
  } as const;
  const told = missing.map((one) => `${one.macAddress} of interface "${one.name}"`).join(', ');
  const why = `Recorded the MAC address ${told}`;
  return [
    {
      do: 'patch',
      type: VIRTUAL_MACHINE_IDENTITIES,
      name: { name, namespace },
      uid,
      patch,
      reason: 'IdentityChanged',
      why,
    },
  ];
}

/** Returns the writes that make the record hold the identity of the VM; none when it does already. */
export function recordIdentity(world: VmWorld): Change[] {
  const { vm } = world;
  const type = VIRTUAL_MACHINE_IDENTITIES;
  const { name, namespace } = vm.metadata;
  const record = ownRecord(world);
  const { configuration, uuidAdmissionSince } = world;
  const spec = identityOf(vm, knownIdentity(world), { smbios: configuration.smbios, uuidAdmissionSince });
  if (record === undefined) {
    const metadata = { name, namespace, finalizers: [RECORD_FINALIZER], ownerReferences: [ownedByVm(vm)] };
    const object = { apiVersion: apiVersionOf(type), kind: type.kind, metadata, spec };
    const why = `Recorded the identity of the virtual machine with firmware uuid ${spec.firmware?.uuid}`;
    return [{ do: 'create', type, object, reason: 'IdentityRecorded', why }];
  }
  const isOwned = controllerUid(record) === vm.metadata.uid;
  if (isOwned && deepEqual(record.spec, spec)) return [];
  const { uid, resourceVersion } = record.metadata;
  const body = {
    metadata: { resourceVersion, ...missingHold(vm, record) },
    // A merge leaves what it does not name.
    spec: { ...spec, interfaces: spec.interfaces ?? null },
  };
  const why = `Recorded a new identity of the virtual machine with firmware uuid ${spec.firmware?.uuid}`;
  const patch = { type: 'merge', body } as const;
  return [{ do: 'patch', type, name: { name, namespace }, uid, patch, reason: 'IdentityChanged', why }];
}
