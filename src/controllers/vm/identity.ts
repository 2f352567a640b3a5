/**
 * Who a VM is: firmware uuid and serial, and the MAC addresses of its interfaces. What the template says
 * counts, then what the record says, then what the instance has, and only then something is made. What is made follows
 * from the VM's uid and name, so that making it again after a lost write makes the same. Pure.
 */
import { derivedMac } from '#api/derived-mac.ts';
import type { Smbios } from '#api/domain/chassis.ts';
import { readableSmbios, readSmbios } from '#api/smbios-annotation.ts';
import type { VirtualMachine } from '#api/virtual-machine/kind.ts';
import { ownedByVm } from '#api/virtual-machine/owner.ts';
import {
  type IdentitySpec,
  VIRTUAL_MACHINE_IDENTITIES,
  type VirtualMachineIdentity,
} from '#api/virtual-machine-identity/kind.ts';
import { interfacesOf } from '#api/attached-interfaces.ts';
import { legacyUuid } from '#api/legacy-uuid.ts';
import { templateSpec, type VmWorld } from '#controllers/vm/vm-world.ts';
import { deepEqual } from '#kube/deep.ts';
import { apiVersionOf, controllerUid, isDeleting, type Stored } from '#kube/meta.ts';
import type { Change } from '#runtime/plan.ts';

/** `configured`: what VMs that are nobody yet say of their maker; one that has run keeps to what it said. */
export function identityOf(
  vm: Stored<VirtualMachine>,
  known: IdentitySpec | undefined,
  configured?: Smbios,
): IdentitySpec {
  const spec = templateSpec(vm);
  const uuid = spec.domain.firmware?.uuid || known?.firmware?.uuid || legacyUuid(vm.metadata.name);
  const serial = spec.domain.firmware?.serial || known?.firmware?.serial;
  const smbios = known === undefined ? readableSmbios(configured) : known.smbios;
  // An address that the template named before and names no more is not kept.
  const made = known?.interfaces?.filter(({ fromTemplate }) => fromTemplate !== true) ?? [];
  const macs = new Map(made.map(({ name, macAddress }) => [name, macAddress]));
  const interfaces = interfacesOf(spec).map(({ name, macAddress }) =>
    macAddress
      ? { name, macAddress: plainMac(macAddress), fromTemplate: true }
      : { name, macAddress: macs.get(name) ?? derivedMac(vm.metadata.uid, name) },
  );
  return {
    firmware: { uuid, ...(serial ? { serial } : {}) },
    ...(smbios === undefined ? {} : { smbios }),
    ...(interfaces.length === 0 ? {} : { interfaces }),
  };
}

/** Returns the address as records have it: in lower case, with colons. */
const plainMac = (text: string) => text.toLowerCase().replaceAll('-', ':');

/** The record, where it is this VM's or can become it. */
export function ownRecord({ vm, identity }: VmWorld): Stored<VirtualMachineIdentity> | undefined {
  return identity === undefined || isForeign(vm, identity) ? undefined : identity;
}

/**
 * Who the VM was so far: on record, or, where that says nothing, as the instance has it. MAC addresses count as a whole:
 * one that the record leaves out was the template's own at the start.
 */
export function knownIdentity(world: VmWorld): IdentitySpec | undefined {
  const { vmi } = world;
  const recorded: IdentitySpec | undefined = ownRecord(world)?.spec;
  if (vmi === undefined) return recorded;
  const { uuid, serial } = vmi.spec.domain.firmware ?? {};
  const firmware = { uuid: recorded?.firmware?.uuid || uuid, serial: recorded?.firmware?.serial || serial };
  if (recorded !== undefined) return { ...recorded, firmware };
  const interfaces = interfacesOf(vmi.spec).flatMap(({ name, macAddress }) =>
    macAddress ? [{ name, macAddress }] : [],
  );
  const smbios = readSmbios(vmi.metadata.annotations);
  return { firmware, interfaces, ...(smbios && { smbios }) };
}

/** A record that another VM of this name has left behind: it goes with the next garbage collection. */
export function isForeign(vm: Stored<VirtualMachine>, identity: VirtualMachineIdentity): boolean {
  const owner = controllerUid(identity);
  return isDeleting(identity) || (owner !== undefined && owner !== vm.metadata.uid);
}

/** A record of nobody, which an orphaned VM has left behind, becomes that of the VM that has its instance. */
export function adoptRecord(world: VmWorld): Change[] {
  const { vm } = world;
  const record = ownRecord(world);
  if (record === undefined || controllerUid(record) === vm.metadata.uid) return [];
  const { name, namespace, uid, resourceVersion, ownerReferences = [] } = record.metadata;
  const body = { metadata: { resourceVersion, ownerReferences: [...ownerReferences, ownedByVm(vm)] } };
  const why = 'the record goes with the VM that has the instance';
  const patch = { type: 'merge', body } as const;
  return [{ do: 'patch', type: VIRTUAL_MACHINE_IDENTITIES, name: { name, namespace }, uid, patch, why }];
}

/** Writes the MAC addresses of these interfaces into the record, and changes nothing else in it. */
export function recordMacs(world: VmWorld, names: readonly string[]): Change[] {
  const record = ownRecord(world);
  if (record === undefined || names.length === 0) return [];
  const { interfaces: made = [] } = identityOf(world.vm, knownIdentity(world));
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

/** The writes that make the record say who the VM is; none when it does already. */
export function recordIdentity(world: VmWorld): Change[] {
  const { vm } = world;
  const type = VIRTUAL_MACHINE_IDENTITIES;
  const { name, namespace } = vm.metadata;
  const record = ownRecord(world);
  const spec = identityOf(vm, knownIdentity(world), world.configuration.smbios);
  if (record === undefined) {
    const metadata = { name, namespace, ownerReferences: [ownedByVm(vm)] };
    const object = { apiVersion: apiVersionOf(type), kind: type.kind, metadata, spec };
    const why = `Recorded the identity of the virtual machine with firmware uuid ${spec.firmware?.uuid}`;
    return [{ do: 'create', type, object, reason: 'IdentityRecorded', why }];
  }
  const owned = controllerUid(record) === vm.metadata.uid;
  if (owned && deepEqual(record.spec, spec)) return [];
  const { uid, resourceVersion, ownerReferences = [] } = record.metadata;
  const owners = owned ? {} : { ownerReferences: [...ownerReferences, ownedByVm(vm)] };
  const body = {
    metadata: { resourceVersion, ...owners },
    // A merge leaves what it does not name.
    spec: { ...spec, interfaces: spec.interfaces ?? null },
  };
  const why = `Recorded a new identity of the virtual machine with firmware uuid ${spec.firmware?.uuid}`;
  const patch = { type: 'merge', body } as const;
  return [{ do: 'patch', type, name: { name, namespace }, uid, patch, reason: 'IdentityChanged', why }];
}
