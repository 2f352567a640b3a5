/**
 * Predicts what a guest will see differently at its next start, and why: compares the template of its VM with what the
 * guest saw last, taken from its instance, if there is one, and its identity record. A VM that never ran has no
 * differences. Pure. Limited to what is known before a start: the node resolves aliases of machine types.
 */
import { chipsetOf } from '#api/devices/chipset.ts';
import { topologyOf } from '#api/domain/cpu.ts';
import type { DomainSpec } from '#api/domain/domain.ts';
import { interfacesOf } from '#api/devices/attached-interfaces.ts';
import { derivedMacOf } from '#api/virtual-machine-identity/restored-vm.ts';
import { addressDifferences } from '#api/identity/identity-diff-addresses.ts';
import type { GuestNetwork } from '#api/network/guest-network.ts';
import { agentDifferences, deviceDifferences } from '#api/identity/identity-diff-devices.ts';
import { portDifferences } from '#api/identity/identity-diff-ports.ts';
import { bootDifference } from '#api/identity/identity-diff-boot.ts';
import {
  collectLastSeen,
  type LastSeen,
  type Difference,
  RESOLVED_AT_START,
} from '#api/identity/identity-last-seen.ts';
import type { Configuration } from '#api/kubevirt/configuration.ts';
import { legacyUuid } from '#api/identity/legacy-uuid.ts';
import type { VirtualMachine } from '#api/virtual-machine/kind.ts';
import type { VirtualMachineIdentity } from '#api/virtual-machine-identity/kind.ts';
import type { VirtualMachineInstance } from '#api/virtual-machine-instance/kind.ts';
import type { VmiSpec } from '#api/virtual-machine-instance/spec.ts';
import { deepEqual } from '#kube/deep.ts';
import { controllerUid, isDeleting, type Stored } from '#kube/meta.ts';
import { parseQuantity, findQuantityError } from '#kube/quantity.ts';
import { normalizeMac } from '#api/identity/normalize-mac.ts';

export interface DiffInput {
  readonly vm: Stored<VirtualMachine>;
  /** Ignored if it belongs to an earlier VM of the same name. */
  readonly record?: VirtualMachineIdentity | undefined;
  readonly vmi?: VirtualMachineInstance | undefined;
  readonly configuration: Configuration;
  /** The default network, if there is one and the user may read it. */
  readonly network?: GuestNetwork | undefined;
}

export function identityDiff({ vm, record, vmi, configuration, network }: DiffInput): Difference[] {
  const owns = (object: VirtualMachineIdentity | VirtualMachineInstance | undefined): boolean =>
    object !== undefined && !isDeletingRecord(object) && controllerUid(object) === vm.metadata.uid;
  const seen = collectLastSeen(owns(record) ? record : undefined, owns(vmi) ? vmi : undefined);
  if (seen === undefined) return [];
  const next: VmiSpec = vm.spec.template.spec ?? { domain: {} };
  const machine = next.domain.machine?.type || configuration.defaultMachineType;
  return [
    ...firmwareDifferences(vm, next, seen),
    ...machineDifferences(machine, next.domain.machine?.type ? TEMPLATE : DEFAULT_MACHINE, seen),
    ...hardwareDifferences(next.domain, seen),
    ...macDifferences(vm, next, seen),
    ...addressDifferences(vm, owns(record) ? (record?.spec ?? {}) : {}, network),
    ...deviceDifferences(next, seen, machine),
    ...portDifferences(next, seen, machine),
    ...agentDifferences({ metadata: vm.spec.template.metadata ?? {}, spec: next }, seen),
    ...bootDifference(next, seen),
  ];
}

const TEMPLATE = 'the template of the VM changed';
const DEFAULT_MACHINE = 'the template names no machine type: the default of the KubeVirt object applies';

/**
 * A record that is being deleted belongs to an earlier VM; an instance that is being deleted may have run until now.
 */
function isDeletingRecord(object: VirtualMachineIdentity | VirtualMachineInstance): boolean {
  return object.kind === 'VirtualMachineIdentity' && isDeleting(object);
}

function firmwareDifferences(vm: Stored<VirtualMachine>, { domain }: VmiSpec, { firmware }: LastSeen): Difference[] {
  const { uuid: from, serial: fromSerial = '' } = firmware;
  const uuid = domain.firmware?.uuid || from || legacyUuid(vm.metadata.name);
  const serial = domain.firmware?.serial || fromSerial;
  return [
    ...(from && uuid.toLowerCase() !== from.toLowerCase() ? [{ what: 'uuid', from, to: uuid, why: TEMPLATE }] : []),
    ...(serial === fromSerial ? [] : [{ what: 'serial', from: textOrNone(fromSerial), to: serial, why: TEMPLATE }]),
  ];
}

function machineDifferences(to: string, why: string, { machine, wanted }: LastSeen): Difference[] {
  const [before, after] = [chipsetOf(machine), chipsetOf(to)];
  const changed = before !== undefined && after !== undefined && before !== after;
  const isAlias = !to.includes('.');
  // The same alias counts as unchanged, whatever it resolved to; without an instance the last alias is unknown.
  const isSame = to === machine || to === wanted || (isAlias && wanted === undefined && !changed);
  if (machine === undefined || isSame) return [];
  return [
    { what: 'machine type', from: machine, to: isAlias ? `${to} (${RESOLVED_AT_START})` : to, why },
    ...(changed ? [chipsetDifference(before, after)] : []),
  ];
}

function chipsetDifference(from: string, to: string): Difference {
  const why = `addresses of the chipset ${from} are not valid on ${to}: every device gets a new one`;
  return { what: 'addresses of all devices', from: `of ${from}`, to: `of ${to}`, why };
}

/** Compares hardware that only an instance shows. */
function hardwareDifferences(next: DomainSpec, { spec }: LastSeen): Difference[] {
  if (spec === undefined) return [];
  const facts: Readonly<Record<string, (domain: DomainSpec) => string>> = {
    'cpu topology': topologyText,
    'cpu model': ({ cpu }) => cpu?.model || 'host-model',
    memory: memoryText,
    firmware: firmwareText,
    kernel: ({ firmware }) => partText(firmware?.kernelBoot),
    acpi: ({ features }) => (features?.acpi?.enabled === false ? 'off' : 'on'),
    smm: ({ features, firmware }) => (smmOf({ features, firmware }) ? 'on' : 'off'),
    'cpu features': ({ cpu }) => partText(cpu?.features),
    chassis: ({ chassis }) => partText(chassis),
    clock: ({ clock }) => partText(clock),
    hyperv: ({ features }) => partText(features?.hypervPassthrough ?? features?.hyperv),
    kvm: ({ features }) => partText(features?.kvm),
  };
  return Object.entries(facts).flatMap(([what, textOf]) => {
    const [from, to] = [textOf(spec.domain), textOf(next)];
    if (from === to || (what === 'memory' && isSameSize(from, to))) return [];
    if (JSON_FACTS.has(what) && deepEqual(JSON.parse(from), JSON.parse(to))) return [];
    return [{ what, from, to, why: TEMPLATE }];
  });
}

/** Facts that are compared as JSON values, ignoring the order of keys. */
const JSON_FACTS: ReadonlySet<string> = new Set(['kernel', 'cpu features', 'chassis', 'clock', 'hyperv', 'kvm']);

function partText(part: unknown): string {
  return JSON.stringify(part ?? 'none');
}

function topologyText(domain: DomainSpec): string {
  const { sockets, cores, threads } = topologyOf(domain);
  return `${sockets} sockets, ${cores} cores, ${threads} threads`;
}

function memoryText({ memory, resources }: DomainSpec): string {
  return String(memory?.guest ?? resources?.requests?.['memory'] ?? resources?.limits?.['memory'] ?? '');
}

function isSameSize(a: string, b: string): boolean {
  if (findQuantityError(a) !== undefined || findQuantityError(b) !== undefined) return false;
  return parseQuantity(a).nanos === parseQuantity(b).nanos;
}

function firmwareText({ firmware }: DomainSpec): string {
  const efi = firmware?.bootloader?.efi;
  if (efi === undefined) return 'BIOS';
  return efi.secureBoot === false ? 'EFI' : 'EFI with secure boot';
}

function smmOf({ features, firmware }: Pick<DomainSpec, 'features' | 'firmware'>): boolean {
  const efi = firmware?.bootloader?.efi;
  return features?.smm === undefined ? efi !== undefined && efi.secureBoot !== false : (features.smm.enabled ?? true);
}

function macDifferences({ metadata }: Stored<VirtualMachine>, next: VmiSpec, { macs }: LastSeen): Difference[] {
  return interfacesOf(next).flatMap(({ name, macAddress }) => {
    const { mac: from, isDerived } = macs.get(name) ?? {};
    // The record does not keep addresses that the template had set itself.
    if (from === undefined) return [];
    const to = macAddress || (isDerived === true ? from : derivedMacOf({ metadata }, name));
    if (normalizeMac(to) === normalizeMac(from)) return [];
    const why = macAddress ? TEMPLATE : 'the template no longer names a MAC address: one is derived and kept';
    return [{ what: `MAC of nic-${name}`, from, to, why }];
  });
}

const textOrNone = (text: string) => (text === '' ? 'none' : text);
