/**
 * Resolves the identity of a VM, which is its firmware uuid and serial and the MAC and IP addresses of its interfaces, and
 * writes it to the identity record. Values come from the template, then the record, then the instance; missing ones are
 * derived from the uid and name of the VM, so that a repetition after a lost write gives the same values. Pure.
 */
import type { Smbios } from '#api/domain/chassis.ts';
import { pickValidSmbios, readSmbios } from '#api/identity/smbios-annotation.ts';
import { RECORD_FINALIZER } from '#api/names.ts';
import type { OwnedAddresses } from '#api/network/owned-addresses.ts';
import { parseIfValid, podInterfacesOf, requestedAddressesIn } from '#api/network/requested-addresses.ts';
import type { VmiSpec } from '#api/virtual-machine-instance/spec.ts';
import { formatIpAddress } from '#lib/ip-address.ts';
import { type VirtualMachine, templateSpec } from '#api/virtual-machine/kind.ts';
import { vmOwnerReference } from '#api/virtual-machine/owner.ts';
import {
  type IdentitySpec,
  VIRTUAL_MACHINE_IDENTITIES,
  type VirtualMachineIdentity,
} from '#api/virtual-machine-identity/kind.ts';
import { isBeingRemoved } from '#api/virtual-machine-identity/record-state.ts';
import { derivedMacOf } from '#api/virtual-machine-identity/restored-vm.ts';
import { isOfVm, missingRecordMetadata } from '#controllers/vm/identity/record-finalizer.ts';
import { interfacesOf } from '#api/devices/attached-interfaces.ts';
import { deriveMissingUuid } from '#api/identity/uuid-admission.ts';
import type { VmWorld } from '#controllers/vm/vm-world.ts';
import { deepEqual } from '#kube/deep.ts';
import { apiVersionOf, controllerUid, isDeleting, type Stored } from '#kube/meta.ts';
import type { Change } from '#runtime/plan.ts';
import { normalizeMac } from '#api/identity/normalize-mac.ts';

/** The inputs for a VM that has neither a record nor an instance. */
interface IdentityDefaults {
  /** The SMBIOS manufacturer fields of new VMs; a VM that has run keeps its own. */
  readonly smbios?: Smbios | undefined;
  readonly uuidAdmissionSince?: string | undefined;
  /** The addresses that the VM owns on the default network (api/network/owned-addresses.ts). */
  readonly addresses?: OwnedAddresses | undefined;
  /** The instance that runs with these addresses; without one, the record takes precedence. */
  readonly vmi?: VmWorld['vmi'];
}

/** Returns the complete identity of a VM; `known` is the identity in its record or its instance. */
export function resolveIdentity(
  vm: Stored<VirtualMachine>,
  known: IdentitySpec | undefined,
  defaults: IdentityDefaults = {},
): IdentitySpec {
  const spec = templateSpec(vm);
  const uuid =
    spec.domain.firmware?.uuid || known?.firmware?.uuid || deriveMissingUuid(vm, defaults.uuidAdmissionSince);
  const serial = spec.domain.firmware?.serial || known?.firmware?.serial;
  const smbios = known === undefined ? pickValidSmbios(defaults.smbios) : known.smbios;
  // An address that came from the template is dropped when the template no longer has it.
  const derived = known?.interfaces?.filter(({ fromTemplate }) => fromTemplate !== true) ?? [];
  const macs = new Map(derived.map(({ name, macAddress }) => [name, macAddress]));
  const addressesOf = createAddressLookup(spec, known, defaults);
  const interfaces = interfacesOf(spec).map(({ name, macAddress }) => ({
    name,
    ...(macAddress
      ? { macAddress: normalizeMac(macAddress), fromTemplate: true }
      : { macAddress: macs.get(name) ?? derivedMacOf(vm, name) }),
    ...addressesOf(name),
  }));
  return {
    firmware: { uuid, ...(serial ? { serial } : {}) },
    ...(smbios === undefined ? {} : { smbios }),
    ...(interfaces.length === 0 ? {} : { interfaces }),
  };
}

/** Returns a function that finds the addresses of an interface, if it has some. */
function createAddressLookup(spec: VmiSpec, known: IdentitySpec | undefined, { addresses, vmi }: IdentityDefaults) {
  const onPodNetwork = new Set(podInterfacesOf(spec));
  const recorded = new Map(known?.interfaces?.map((nic) => [nic.name, nic.addresses]));
  return (name: string): { addresses?: string[] } => {
    const [before, owned] = [recorded.get(name), addresses?.get(name)];
    // A restore writes the record of a stopped VM, which then gets the addresses of the record at its start.
    const found = vmi === undefined ? (before ?? owned) : (owned ?? before);
    return found === undefined || found.length === 0 || !onPodNetwork.has(name) ? {} : { addresses: [...found] };
  };
}

/** Returns the record if the VM owns it or can adopt it. */
export function ownRecord({
  vm,
  identity,
}: Pick<VmWorld, 'vm' | 'identity'>): Stored<VirtualMachineIdentity> | undefined {
  return identity === undefined || isForeignRecord(vm, identity) ? undefined : identity;
}

/**
 * Returns the identity that the VM has had so far: from its record, otherwise from the instance, otherwise from the
 * newest snapshot. The MAC addresses of a record are complete: an interface without one had the address of the
 * template.
 */
export function knownIdentity(world: VmWorld): IdentitySpec | undefined {
  const { vmi, lostRecord } = world;
  const recorded: IdentitySpec | undefined = ownRecord(world)?.spec;
  const saved = lostRecord?.snapshot?.identity.spec;
  if (vmi === undefined) return recorded ?? saved;
  const { uuid, serial } = vmi.spec.domain.firmware ?? {};
  const firmware = { uuid: recorded?.firmware?.uuid || uuid, serial: recorded?.firmware?.serial || serial };
  if (recorded !== undefined) return { ...recorded, firmware };
  const requested = requestedAddressesIn(vmi.metadata.annotations);
  const interfaces = interfacesOf(vmi.spec).flatMap(({ name, macAddress }) => {
    const addresses = requested[name]?.flatMap((text) => formatIfValid(text) ?? []);
    return macAddress ? [{ name, macAddress, ...(addresses && { addresses }) }] : [];
  });
  const attached = new Set(interfaces.map(({ name }) => name));
  const detached = saved?.interfaces?.filter(({ name }) => !attached.has(name)) ?? [];
  const smbios = readSmbios(vmi.metadata.annotations);
  return { firmware, interfaces: [...interfaces, ...detached], ...(smbios && { smbios }) };
}

/**
 * Reports whether the record belongs to an earlier VM of this name; the garbage collector will delete it. A record of
 * this VM that is being deleted stays usable while it has our finalizer.
 */
export function isForeignRecord(vm: Stored<VirtualMachine>, identity: Stored<VirtualMachineIdentity>): boolean {
  if (isOfVm(identity, vm)) return isBeingRemoved(identity);
  return isDeleting(identity) || controllerUid(identity) !== undefined;
}

/** Returns the write that makes the VM the owner of a record without owner, or of one restored with it from a backup. */
export function adoptRecord(world: VmWorld): Change[] {
  const { vm } = world;
  const record = ownRecord(world);
  if (record === undefined || controllerUid(record) === vm.metadata.uid) return [];
  const { name, namespace, uid, resourceVersion } = record.metadata;
  const body = { metadata: { resourceVersion, ...missingRecordMetadata(vm, record) } };
  const why = `Adopted the identity record of an earlier virtual machine ${name}`;
  const patch = { type: 'merge', body } as const;
  const type = VIRTUAL_MACHINE_IDENTITIES;
  return [{ do: 'patch', type, name: { name, namespace }, uid, patch, reason: 'IdentityRecordAdopted', why }];
}

function formatIfValid(text: string): string | undefined {
  const address = parseIfValid(text);
  return address && formatIpAddress(address);
}

/** Writes the addresses that the running VM owns into the record, and changes nothing else in it. */
export function recordAddresses(world: VmWorld): Change[] {
  const record = ownRecord(world);
  if (record === undefined || world.vmi === undefined) return [];
  const addressesOf = createAddressLookup(world.vmi.spec, undefined, world);
  const { interfaces: known = [] } = record.spec;
  const interfaces = known.map((nic) => ({ ...nic, ...addressesOf(nic.name) }));
  if (deepEqual(interfaces, known)) return [];
  const { name, namespace, uid, resourceVersion } = record.metadata;
  const patch = { type: 'merge', body: { metadata: { resourceVersion }, spec: { interfaces } } } as const;
  const changed = interfaces.filter((nic, i) => !deepEqual(nic, known[i]));
  const texts = changed.map(({ name: nic, addresses = [] }) => `${addresses.join(' and ')} of interface "${nic}"`);
  const why = `Recorded the address ${texts.join(', ')}`;
  const type = VIRTUAL_MACHINE_IDENTITIES;
  return [{ do: 'patch', type, name: { name, namespace }, uid, patch, reason: 'IdentityChanged', why }];
}

/** Writes the MAC addresses of these interfaces into the record, and changes nothing else in it. */
export function recordMacs(world: VmWorld, names: readonly string[]): Change[] {
  const record = ownRecord(world);
  if (record === undefined || names.length === 0) return [];
  const { interfaces: resolved = [] } = resolveIdentity(world.vm, knownIdentity(world), world);
  const { interfaces: known = [] } = record.spec;
  const missing = resolved.filter((one) => names.includes(one.name) && !known.some((other) => deepEqual(one, other)));
  if (missing.length === 0) return [];
  const kept = known.filter(({ name }) => !missing.some((one) => one.name === name));
  const { name, namespace, uid, resourceVersion } = record.metadata;
  const patch = {
    type: 'merge',
    body: { metadata: { resourceVersion }, spec: { interfaces: [...kept, ...missing] } },
  } as const;
  const addresses = missing.map(({ name, macAddress }) => `${macAddress} of interface "${name}"`).join(', ');
  const why = `Recorded the MAC address ${addresses}`;
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

/** Returns the write that creates or updates the record of the VM; none if it is up to date. */
export function recordIdentity(world: VmWorld): Change[] {
  const { vm } = world;
  const type = VIRTUAL_MACHINE_IDENTITIES;
  const { name, namespace } = vm.metadata;
  const record = ownRecord(world);
  const { configuration, uuidAdmissionSince, addresses, vmi } = world;
  const defaults = { smbios: configuration.smbios, uuidAdmissionSince, addresses, vmi };
  const spec = resolveIdentity(vm, knownIdentity(world), defaults);
  if (record === undefined) {
    const metadata = { name, namespace, finalizers: [RECORD_FINALIZER], ownerReferences: [vmOwnerReference(vm)] };
    const object = { apiVersion: apiVersionOf(type), kind: type.kind, metadata, spec };
    const why = `Recorded the identity of the virtual machine with firmware uuid ${spec.firmware?.uuid}`;
    return [{ do: 'create', type, object, reason: 'IdentityRecorded', why }];
  }
  const isOwned = controllerUid(record) === vm.metadata.uid;
  if (isOwned && deepEqual(record.spec, spec)) return [];
  const { uid, resourceVersion } = record.metadata;
  const body = {
    metadata: { resourceVersion, ...missingRecordMetadata(vm, record) },
    // A merge patch keeps fields that it does not mention, so an empty list must be null.
    spec: { ...spec, interfaces: spec.interfaces ?? null },
  };
  const why = `Recorded a new identity of the virtual machine with firmware uuid ${spec.firmware?.uuid}`;
  const patch = { type: 'merge', body } as const;
  return [{ do: 'patch', type, name: { name, namespace }, uid, patch, reason: 'IdentityChanged', why }];
}
