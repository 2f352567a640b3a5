/**
 * A live look before something goes that protected VMs need. The API server refuses by marks (operator/objects/), which
 * follow the labels a moment later; this closes that moment. It is asked in addition: without an answer of ours a delete
 * goes on, as the marks allow.
 */
import type { AdmissionRequest, Answer } from '#admission/review.ts';
import { claimNamesOf } from '#api/claim-names.ts';
import { namesOfProtected } from '#api/delete-protection.ts';
import { CLAIM_REPLACERS } from '#api/own-accounts.ts';
import { isUnownedStateOf } from '#api/persistent-state.ts';
import { bondOf, deleteRefusal, isGuardedDefinition, type GuardedKind } from '#api/protected-deletes.ts';
import type { VirtualMachine } from '#api/virtual-machine/kind.ts';
import type { PersistentVolume, PersistentVolumeClaim } from '#kube/core-kinds.ts';
import { controllerUid, isDeleting, type KubeObject, type Stored } from '#kube/meta.ts';

export interface ProtectionLookup {
  /** VMs that are protected now: the first in order, of that namespace or of all. Asks the API, not a cache. */
  protectedVms(query: { namespace?: string; limit: number }): Promise<readonly Stored<VirtualMachine>[]>;
}

/** More than a refusal lists, and room for some that are being deleted. */
const ANY = 20;
/** Among which the VM of a disk is looked for. Where more are protected in one namespace, the marks have to do. */
const OF_A_DISK = 500;

type Look = (object: KubeObject, request: AdmissionRequest, lookup: ProtectionLookup) => Promise<readonly string[]>;

/** By kind: the names of the VMs that would be lost. */
const LOOKS: Readonly<Record<GuardedKind, Look>> = {
  async Namespace({ metadata }, _, lookup) {
    const vms = await lookup.protectedVms({ namespace: metadata.name, limit: ANY });
    return vms.filter(stays).map(nameOf);
  },
  async PersistentVolumeClaim(claim, { user }, lookup) {
    if (CLAIM_REPLACERS.includes(user)) return [];
    const { metadata } = claim;
    const owner = controllerUid(claim);
    const vms = await lookup.protectedVms({ namespace: metadata.namespace ?? '', limit: OF_A_DISK });
    const isOf = (vm: Stored<VirtualMachine>) =>
      has(vm, metadata.name) ||
      vm.metadata.uid === owner ||
      isUnownedStateOf(claim as PersistentVolumeClaim, vm.metadata.name);
    return vms.filter((vm) => stays(vm) && isOf(vm)).map(nameOf);
  },
  async PersistentVolume(volume, _, lookup) {
    const { spec, status } = volume as PersistentVolume;
    const { namespace, name } = spec?.claimRef ?? {};
    if (namespace === undefined || status?.phase !== 'Bound') return [];
    const vms = await lookup.protectedVms({ namespace, limit: OF_A_DISK });
    return vms.filter((vm) => stays(vm) && has(vm, name)).map(fullNameOf);
  },
  async CustomResourceDefinition({ metadata }, _, lookup) {
    if (!isGuardedDefinition(metadata.name ?? '')) return [];
    const vms = await lookup.protectedVms({ limit: ANY });
    return vms.filter(stays).map(fullNameOf);
  },
};

export async function reviewProtectedDelete(request: AdmissionRequest, lookup: ProtectionLookup): Promise<Answer> {
  const { operation, oldObject } = request;
  const kind = oldObject?.kind ?? '';
  if (operation !== 'DELETE' || oldObject === undefined || !isGuarded(kind)) return {};
  const names = await LOOKS[kind](oldObject, request, lookup);
  if (names.length === 0) return {};
  const vms = namesOfProtected(names.toSorted());
  const { name = '' } = oldObject.metadata;
  return { denied: deleteRefusal({ kind, name, bond: bondOf(kind, name), vms }) };
}

function isGuarded(kind: string): kind is GuardedKind {
  return Object.hasOwn(LOOKS, kind);
}

/** One that is being deleted cannot be protected any more. */
function stays(vm: Stored<VirtualMachine>): boolean {
  return !isDeleting(vm);
}

function has({ spec }: Stored<VirtualMachine>, claim: string | undefined): boolean {
  return claim !== undefined && claimNamesOf(spec.template.spec ?? {}).includes(claim);
}

const nameOf = ({ metadata }: Stored) => metadata.name;
const fullNameOf = ({ metadata }: Stored) => `${metadata.namespace}/${metadata.name}`;
