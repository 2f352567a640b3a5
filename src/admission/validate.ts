/** The validating webhooks. Objects have been validated by their schema. */
import type { EvictionLookup } from '#admission/pod-evictions.ts';
import type { ProtectionLookup } from '#admission/protected-deletes.ts';
import type { ReviewRequest, AdmissionDecision } from '#admission/review.ts';
import { warnAboutSharedClaims } from '#admission/shared-claims.ts';
import { macAddressesOf } from '#api/identity/mac-address-index.ts';
import { findFirmwareMismatch } from '#api/storage/boot-firmware.ts';
import type { Configuration } from '#api/kubevirt/configuration.ts';
import { describeUnofferedType } from '#api/machine-types/offered-types.ts';
import { accountOf } from '#api/own-accounts.ts';
import { isProtected } from '#api/protection/delete-protection.ts';
import {
  findMigrationRefusal,
  validateVirtualMachineInstanceMigration,
} from '#api/validation/kinds/validate-virtual-machine-instance-migration.ts';
import {
  addressWarnings,
  checkInstanceAddresses,
  checkVmAddresses,
  type AddressLookup,
} from '#api/validation/requested-addresses.ts';
import { validateVirtualMachineInstance } from '#api/validation/kinds/validate-virtual-machine-instance.ts';
import { validateVirtualMachineRestore } from '#api/validation/kinds/validate-virtual-machine-restore.ts';
import { validateVirtualMachineSnapshot } from '#api/validation/kinds/validate-virtual-machine-snapshot.ts';
import { validateVirtualMachine, virtualMachineWarnings } from '#api/validation/kinds/validate-virtual-machine.ts';
import type { VirtualMachine } from '#api/virtual-machine/kind.ts';
import type { VirtualMachineInstance } from '#api/virtual-machine-instance/kind.ts';
import type { VirtualMachineInstanceMigration } from '#api/virtual-machine-instance-migration/kind.ts';
import type { VirtualMachineRestore } from '#api/virtual-machine-restore/kind.ts';
import type { VirtualMachineSnapshot } from '#api/virtual-machine-snapshot/kind.ts';
import type { Node } from '#kube/core-kinds.ts';
import { isDeleting, type KubeObject, type Stored } from '#kube/meta.ts';

/** State that the decisions depend on besides the review; the server provides it. */
export interface AdmissionLookup extends ProtectionLookup, EvictionLookup, AddressLookup {
  configuration(): Configuration;
  /** Returns the VMs of all namespaces that have this firmware uuid, ignoring case, and are not being deleted. */
  vmsWithUuid(uuid: string): readonly ValueHolder[];
  /** Returns the VMs that have the MAC address, in the form of macAddressesOf. */
  vmsWithMac(mac: string): readonly ValueHolder[];
  /** Returns the nodes, from a cache: the result is only for warnings. */
  nodes(): readonly Node[];
  /** Returns the unfinished VirtualMachineRestores of the VM. Each is confirmed by the API, because one refuses others. */
  restoresOf(namespace: string, vmName: string): Promise<readonly { readonly name: string }[]>;
  /** Returns the unfinished migrations of the instance, read from the API. */
  activeMigrationsOf(namespace: string, vmiName: string): Promise<readonly Stored<VirtualMachineInstanceMigration>[]>;
}

/** Accounts that may make changes to instances which users may not. */
const TRUSTED = new Set(['vm-controller', 'vmi-controller', 'selfsame-subresources'].map(accountOf));

/** Accounts that may hotplug devices: for changes of the VM, and for the verbs of instances. */
const HOTPLUGGERS = new Set(['vm-controller', 'selfsame-subresources'].map(accountOf));

/** Accounts that may change VMs that a snapshot or restore holds. */
const WRITERS = ['vm-controller', 'restore-controller'] as const;

export function reviewVirtualMachine(request: ReviewRequest, lookup: AdmissionLookup): AdmissionDecision {
  const { object: vm, old } = writtenObjects<VirtualMachine>(request);
  if (vm === undefined) return {};
  const writer = WRITERS.find((account) => accountOf(account) === request.user);
  const configuration = lookup.configuration();
  const errors = validateVirtualMachine(vm, { old, configuration, writer });
  // A restore brings back what the VM asked for; the next start is refused if that is not possible any more.
  const addressErrors = writer === 'restore-controller' ? [] : checkVmAddresses(vm, old, lookup);
  return {
    errors: [...errors, ...addressErrors],
    warnings: [
      ...virtualMachineWarnings(vm, { old, configuration }),
      ...warnAboutDuplicates(vm, lookup),
      ...addressWarnings(vm, [vm.metadata.annotations, vm.spec.template?.metadata?.annotations], lookup),
      ...warnAboutFirmware(vm, old, lookup),
      ...warnAboutSharedClaims(vm, lookup),
      ...warnAboutMachineType(vm, lookup),
      ...warnAboutDeletedClaims(vm, old, lookup),
    ],
  };
}

export function reviewVirtualMachineSnapshot(request: ReviewRequest): AdmissionDecision {
  const { object: snapshot, old } = writtenObjects<VirtualMachineSnapshot>(request);
  return snapshot === undefined ? {} : { errors: validateVirtualMachineSnapshot(snapshot, { old }) };
}

export async function reviewVirtualMachineRestore(
  request: ReviewRequest,
  lookup: AdmissionLookup,
): Promise<AdmissionDecision> {
  const { object: restore, old } = writtenObjects<VirtualMachineRestore>(request);
  if (restore === undefined) return {};
  const { metadata, spec } = restore;
  const unfinished = old === undefined ? await lookup.restoresOf(metadata.namespace ?? '', spec.target.name) : [];
  return { errors: validateVirtualMachineRestore(restore, { old, unfinished }) };
}

export function reviewVirtualMachineInstance(request: ReviewRequest, lookup: AdmissionLookup): AdmissionDecision {
  const { object: vmi, old } = writtenObjects<VirtualMachineInstance>(request);
  if (vmi === undefined) return {};
  const { user } = request;
  const context = {
    old,
    trusted: TRUSTED.has(user),
    hotplugs: HOTPLUGGERS.has(user),
    configuration: lookup.configuration(),
  };
  // The addresses of a VM were checked when the VM was written, or come from its record.
  const addressErrors = context.trusted && old === undefined ? [] : checkInstanceAddresses(vmi, old, lookup);
  return {
    errors: [...validateVirtualMachineInstance(vmi, context), ...addressErrors],
    warnings: old === undefined && !context.trusted ? addressWarnings(vmi, [vmi.metadata.annotations], lookup) : [],
  };
}

export async function reviewVirtualMachineInstanceMigration(
  request: ReviewRequest,
  lookup: AdmissionLookup,
): Promise<AdmissionDecision> {
  const { object: migration, old } = writtenObjects<VirtualMachineInstanceMigration>(request);
  if (migration === undefined) return {};
  const errors = validateVirtualMachineInstanceMigration(migration, { old });
  if (errors.length > 0 || old !== undefined) return { errors };
  const { metadata, spec } = migration;
  const [namespace, vmiName] = [metadata.namespace ?? request.namespace, spec.vmiName ?? ''];
  const vmi = await lookup.instance(namespace, vmiName);
  // Two concurrent requests both pass; the controller starts the older migration first.
  const active = vmi === undefined ? [] : await lookup.activeMigrationsOf(namespace, vmiName);
  const refusal = findMigrationRefusal(migration, { vmi, active });
  return refusal === undefined ? {} : { badRequest: refusal };
}

/** Returns the objects of a create or update; nothing for other operations. */
function writtenObjects<T extends KubeObject>({
  operation,
  object,
  oldObject,
}: ReviewRequest): { object?: T; old?: T } {
  if (operation !== 'CREATE' && operation !== 'UPDATE') return {};
  return { object: object as T | undefined, old: oldObject as T | undefined };
}

/** Maximum number of VMs in the warnings. */
const MAX_NAMED = 3;
/** A VM can have many interfaces; the condition of the VM and `virtctl identity duplicates` report the others. */
const MAX_MAC_WARNINGS = 8;

interface ValueHolder {
  readonly namespace: string;
  readonly name: string;
}

type DuplicateLookup = Pick<AdmissionLookup, 'vmsWithUuid' | 'vmsWithMac'>;

/** Warns about other VMs with the same firmware UUID or MAC address. Duplicates are allowed: a user may want them. */
function warnAboutDuplicates(vm: VirtualMachine, lookup: DuplicateLookup): string[] {
  const { metadata, spec } = vm;
  const uuid = spec.template?.spec?.domain?.firmware?.uuid;
  if (metadata.deletionTimestamp !== undefined) return [];
  return [
    ...(uuid ? warnAboutHolders(`firmware uuid ${uuid}`, metadata, lookup.vmsWithUuid(uuid)) : []),
    ...macAddressesOf(vm)
      .flatMap((mac) => warnAboutHolders(`MAC address ${mac}`, metadata, lookup.vmsWithMac(mac)))
      .slice(0, MAX_MAC_WARNINGS),
  ];
}

/** Warns about an image for another firmware, at creation and when a change makes it so. */
function warnAboutFirmware(
  vm: VirtualMachine,
  old: VirtualMachine | undefined,
  { claimsOfVm }: Pick<AdmissionLookup, 'claimsOfVm'>,
): string[] {
  const [now, before] = [vm, old].map((one) => {
    const spec = one?.spec.template?.spec;
    return one === undefined || spec?.domain === undefined ? undefined : findFirmwareMismatch(spec, claimsOfVm(one));
  });
  return now === undefined || now === before ? [] : [now];
}

/** Warns about a type that no node offers. It is allowed: a node that offers it may join. */
function warnAboutMachineType({ metadata, spec }: VirtualMachine, lookup: AdmissionLookup): string[] {
  const type = spec.template?.spec?.domain?.machine?.type;
  if (!type || metadata.deletionTimestamp !== undefined) return [];
  const problem = describeUnofferedType(type, lookup.nodes());
  return problem === undefined ? [] : [`spec.template.spec.domain.machine.type: the VM cannot start: ${problem}`];
}

/** Warns about disks that are being deleted when the VM becomes protected: it is too late to keep the claims. */
function warnAboutDeletedClaims(
  vm: VirtualMachine,
  old: VirtualMachine | undefined,
  lookup: Pick<AdmissionLookup, 'claimsOfVm'>,
): string[] {
  if (!isProtected(vm) || (old !== undefined && isProtected(old))) return [];
  return lookup
    .claimsOfVm(vm)
    .filter(isDeleting)
    .slice(0, MAX_NAMED)
    .map(
      ({ metadata }) =>
        `PersistentVolumeClaim "${metadata.name}" of the VirtualMachine is already being deleted, and delete protection cannot cancel that; ` +
        'its volume is retained when the VM stops (condition ClaimBeingDeleted)',
    );
}

/** Names VMs of the same namespace only: the user may not be allowed to see others. */
function warnAboutHolders(
  value: string,
  metadata: VirtualMachine['metadata'],
  holders: readonly ValueHolder[],
): string[] {
  const others = holders.filter(({ namespace, name }) => namespace !== metadata.namespace || name !== metadata.name);
  const inNamespace = others.filter(({ namespace }) => namespace === metadata.namespace).map(({ name }) => name);
  return [
    ...inNamespace
      .toSorted()
      .slice(0, MAX_NAMED)
      .map((name) => `${value} is also that of VirtualMachine "${name}"`),
    ...(inNamespace.length < others.length ? [`${value} is also that of a VirtualMachine in another namespace`] : []),
  ];
}
