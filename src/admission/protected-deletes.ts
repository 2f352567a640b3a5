/**
 * Reviews deletes of objects that protected VMs need, and warns about claims that other VMs use and about
 * disks that are deleted with a VM. The policies (operator/objects/) refuse them by annotations,
 * which follow the labels of VMs with a delay; this webhook covers the delay by reading the VMs. Without a response
 * from it, the policies alone decide.
 */
import type { ReviewRequest, AdmissionDecision } from '#admission/review.ts';
import { claimNamesOf, statusClaimNames } from '#api/storage/claim-names.ts';
import { formatProtectedNames } from '#api/protection/delete-protection.ts';
import { CLAIM_REPLACERS, isOwnAccount, RECORD_DELETERS } from '#api/own-accounts.ts';
import { RESTORE_NAME_ANNOTATION } from '#api/names.ts';
import { isUnownedStateOf, replacedBy } from '#api/storage/persistent-state.ts';
import {
  relationOf,
  describeDeleteRefusal,
  isGuardedDefinition,
  type GuardedKind,
} from '#api/protection/protected-deletes.ts';
import { VIRTUAL_MACHINES, type VirtualMachine } from '#api/virtual-machine/kind.ts';
import type { PersistentVolume, PersistentVolumeClaim } from '#kube/core-kinds.ts';
import { controllerUid, isDeleting, type KubeObject, type Stored } from '#kube/meta.ts';

export interface ProtectionLookup {
  /** Returns the first protected VMs of the namespace, or of all namespaces. Reads from the API, not from a cache. */
  protectedVms(query: { namespace?: string; limit: number }): Promise<readonly Stored<VirtualMachine>[]>;
  /** Returns the VMs that have the claim as a disk or control it. Reads from a cache: the result is only for warnings. */
  vmsOfClaim(claim: KubeObject): readonly Stored<VirtualMachine>[];
  /** Returns the claims of the VM's disks, from a cache. */
  claimsOfVm(vm: VirtualMachine): readonly Stored<PersistentVolumeClaim>[];
}

/** More than a refusal lists, because some VMs may be being deleted. */
const ANY_VM_LIMIT = 20;
/** Limit of the search for the VM of a disk. If a namespace has more protected VMs, only the annotations count. */
const DISK_SEARCH_LIMIT = 500;

type FindVms = (object: KubeObject, request: ReviewRequest, lookup: ProtectionLookup) => Promise<readonly string[]>;

/** By kind: finds the names of the VMs that would be lost. */
const FINDERS: Readonly<Record<GuardedKind, FindVms>> = {
  async Namespace({ metadata }, _, lookup) {
    const vms = await lookup.protectedVms({ namespace: metadata.name, limit: ANY_VM_LIMIT });
    return vms.filter(isKept).map(nameOf);
  },
  async PersistentVolumeClaim(claim, { user }, lookup) {
    if (CLAIM_REPLACERS.includes(user) && replacedBy(claim) !== undefined) return [];
    const { metadata } = claim;
    const owner = controllerUid(claim);
    const vms = await lookup.protectedVms({ namespace: metadata.namespace ?? '', limit: DISK_SEARCH_LIMIT });
    const isUsedBy = (vm: Stored<VirtualMachine>) =>
      namesClaim(vm, metadata.name) ||
      vm.metadata.uid === owner ||
      isUnownedStateOf(claim as PersistentVolumeClaim, vm.metadata.name);
    return vms.filter((vm) => isKept(vm) && isUsedBy(vm)).map(nameOf);
  },
  async PersistentVolume(volume, _, lookup) {
    const { spec, status } = volume as PersistentVolume;
    const { namespace, name } = spec?.claimRef ?? {};
    if (namespace === undefined || status?.phase !== 'Bound') return [];
    const vms = await lookup.protectedVms({ namespace, limit: DISK_SEARCH_LIMIT });
    return vms.filter((vm) => isKept(vm) && namesClaim(vm, name)).map(fullNameOf);
  },
  async CustomResourceDefinition({ metadata }, _, lookup) {
    if (!isGuardedDefinition(metadata.name ?? '')) return [];
    const vms = await lookup.protectedVms({ limit: ANY_VM_LIMIT });
    return vms.filter(isKept).map(fullNameOf);
  },
};

export async function reviewProtectedDelete(
  request: ReviewRequest,
  lookup: ProtectionLookup,
): Promise<AdmissionDecision> {
  const { operation, oldObject } = request;
  const kind = oldObject?.kind ?? '';
  if (operation === 'DELETE' && kind === VIRTUAL_MACHINES.kind)
    return warnAboutDisks(oldObject as VirtualMachine, request, lookup);
  if (operation !== 'DELETE' || oldObject === undefined || !isGuarded(kind)) return {};
  const names = await FINDERS[kind](oldObject, request, lookup);
  if (names.length === 0) return kind === 'PersistentVolumeClaim' ? warnAboutUse(oldObject, request, lookup) : {};
  const vms = formatProtectedNames(names.toSorted());
  const { name = '' } = oldObject.metadata;
  return { forbidden: describeDeleteRefusal({ kind, name, relation: relationOf(kind, name), vms }) };
}

/** Maximum number of VMs in the warnings. */
const MAX_WARNINGS = 3;

/** Warns about VMs that lose the claim. Components that delete claims as a part of their own work get no warning. */
function warnAboutUse(claim: KubeObject, { user }: ReviewRequest, lookup: ProtectionLookup): AdmissionDecision {
  if (isOwnAccount(user) || RECORD_DELETERS.includes(user) || isDeleting(claim)) return {};
  const vms = lookup.vmsOfClaim(claim).filter(isKept).slice(0, MAX_WARNINGS);
  return vms.length === 0 ? {} : { warnings: vms.map((vm) => describeUse(claim.metadata.name ?? '', vm)) };
}

function describeUse(claim: string, vm: Stored<VirtualMachine>): string {
  const subject = `PersistentVolumeClaim "${claim}" is ${usesClaim(vm, claim) ? 'a disk' : 'the persistent state'} of VirtualMachine "${vm.metadata.name}"`;
  const [running, stopped] = usesClaim(vm, claim)
    ? [', and until then the VM cannot be migrated, restarted or snapshotted', 'which cannot start without it']
    : ['; the next start begins with empty state', 'which starts with empty state without it'];
  return vm.status?.created === true
    ? `${subject}: the claim and its data are deleted when the VM stops${running}`
    : `${subject}, ${stopped}`;
}

/** Warns about restored disks: the VM owns them, unlike those that it had before the restore. */
function warnAboutDisks(vm: VirtualMachine, { user }: ReviewRequest, lookup: ProtectionLookup): AdmissionDecision {
  if (isOwnAccount(user) || RECORD_DELETERS.includes(user) || isDeleting(vm)) return {};
  const restored = lookup
    .claimsOfVm(vm)
    .filter((claim) => controllerUid(claim) === vm.metadata.uid && isRestored(claim))
    .map(({ metadata }) => metadata.name);
  if (restored.length === 0) return {};
  const others = restored.length > MAX_WARNINGS ? ' and others' : '';
  const names = `${restored
    .slice(0, MAX_WARNINGS)
    .map((name) => `"${name}"`)
    .join(', ')}${others}`;
  return {
    warnings: [
      `PersistentVolumeClaim ${names} came to VirtualMachine "${vm.metadata.name}" with a restore and is deleted with it, unless the VM is deleted with --cascade=orphan`,
    ],
  };
}

const isRestored = ({ metadata }: KubeObject) => metadata.annotations?.[RESTORE_NAME_ANNOTATION] !== undefined;

function isGuarded(kind: string): kind is GuardedKind {
  return Object.hasOwn(FINDERS, kind);
}

/** A VM that is being deleted is no longer protected. */
function isKept(vm: Stored<VirtualMachine>): boolean {
  return !isDeleting(vm);
}

function usesClaim({ spec }: Stored<VirtualMachine>, claim: string | undefined): boolean {
  return claim !== undefined && claimNamesOf(spec.template.spec ?? {}).includes(claim);
}

/** Reports whether the template or the status of the VM names the claim. */
function namesClaim(vm: Stored<VirtualMachine>, claim: string | undefined): boolean {
  return usesClaim(vm, claim) || (claim !== undefined && statusClaimNames(vm.status).includes(claim));
}

const nameOf = ({ metadata }: Stored) => metadata.name;
const fullNameOf = ({ metadata }: Stored) => `${metadata.namespace}/${metadata.name}`;
