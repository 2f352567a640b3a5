/** The values of a verb: its names, its world, its steps and the decision about it. decide-verb.ts has the table of all verbs. */
import { GUEST_READS } from '#api/guest-info.ts';
import type { Stored } from '#kube/meta.ts';
import type { VirtualMachine } from '#api/virtual-machine/kind.ts';
import type { VirtualMachineInstance } from '#api/virtual-machine-instance/kind.ts';
import type { VmiVolume } from '#api/domain/volume.ts';
import type { Disk } from '#api/domain/disk.ts';
import type { VirtualMachineInstanceMigration } from '#api/virtual-machine-instance-migration/kind.ts';
import { type ApiError, badRequest, forbidden, notFound, conflict, internalError } from '#kube/api-error.ts';
import { KUBEVIRT_GROUP } from '#api/names.ts';
import type { PersistentVolumeClaim, Pod } from '#kube/core-kinds.ts';

export const STATE_VERBS = ['adoptstate', 'releasestate'] as const;

/** The verb that ends the protection of a detached disk. */
export const RELEASE_DISK_VERB = 'releasedisk';

export const VM_VERBS = [
  ...(['start', 'stop', 'restart', 'migrate', 'addvolume', 'removevolume', 'portforward'] as const),
  RELEASE_DISK_VERB,
  ...STATE_VERBS,
] as const;

export const VMI_VERBS = [
  ...(['pause', 'unpause', 'freeze', 'unfreeze', 'softreboot', 'reset', 'console'] as const),
  ...(['addvolume', 'removevolume', 'vnc', 'vnc/screenshot', 'portforward', ...GUEST_READS] as const),
] as const;

export type VmVerb = (typeof VM_VERBS)[number];

export type VmiVerb = (typeof VMI_VERBS)[number];

export type SubresourceVerb = VmVerb | VmiVerb;

/** The kind that a verb is called on. Some verbs exist on both. */
export type VerbTarget = 'virtualmachine' | 'virtualmachineinstance';

export interface VerbWorld {
  /** Name of the VM and of its instance. */
  readonly name: string;
  /** Absent if there is no VM of that name. Most verbs of instances depend on the instance only. */
  readonly vm?: Stored<VirtualMachine>;
  readonly vmi?: Stored<VirtualMachineInstance>;
  /** For STATE_VERBS only. */
  readonly state?: StateWorld;
  readonly options?: VerbOptions;
}

/** The options of all verbs; each verb reads its own. The caller handles dryRun. */
export interface VerbOptions {
  /** start */
  readonly paused?: boolean;
  /** stop */
  readonly gracePeriod?: number;
  /** restart */
  readonly gracePeriodSeconds?: number;
  /** migrate: labels that the target node must have. */
  readonly addedNodeSelector?: Readonly<Record<string, string>>;
  /** addvolume */
  readonly added?: AddedVolume;
  /** freeze: time after which the guest thaws by itself. */
  readonly unfreezeSeconds?: number;
  /** removevolume: the name of the volume, or of its claim. */
  readonly removed?: string;
  /** releasedisk: the name of the claim. */
  readonly releasedClaim?: string;
  /** adoptstate, releasestate */
  readonly stateClaim?: NamedClaim;
}

/** A volume and the disk of the same name, as they are added to the spec. */
export interface AddedVolume {
  readonly volume: VmiVolume & { readonly persistentVolumeClaim: NonNullable<VmiVolume['persistentVolumeClaim']> };
  readonly disk: Disk;
}

export interface JsonPatchOperation {
  readonly op: 'add' | 'remove' | 'replace' | 'test';
  readonly path: string;
  readonly value?: unknown;
}

/**
 * One step of an allowed verb; steps are executed in order. A JSON patch whose test fails is a conflict (409) for the
 * client. With dryRun, nodes are not called.
 */
export type VerbStep =
  | { readonly do: 'patchVm'; readonly uid: string; readonly patch: readonly JsonPatchOperation[] }
  | { readonly do: 'patchVmStatus'; readonly uid: string; readonly patch: readonly JsonPatchOperation[] }
  | { readonly do: 'patchVmi'; readonly uid: string; readonly patch: readonly JsonPatchOperation[] }
  | {
      readonly do: 'patchClaim';
      readonly name: string;
      readonly uid: string;
      readonly patch: readonly JsonPatchOperation[];
    }
  /** Deletes the running launcher pod of the instance (label CREATED_BY_LABEL), if there is one. */
  | { readonly do: 'deletePod'; readonly vmiUid: string; readonly gracePeriodSeconds: number }
  /** The server generates the name. */
  | {
      readonly do: 'createMigration';
      readonly generateName: string;
      readonly spec: VirtualMachineInstanceMigration['spec'];
    }
  /** Calls the agent of the node in `vmi.status.nodeName`. */
  | { readonly do: 'callNode'; readonly verb: VmiVerb; readonly nodeName: string };

export interface AllowedDecision {
  readonly allowed: readonly VerbStep[];
  /** HTTP code of the response, whose body is empty. */
  readonly code: 200 | 202;
}

export interface RefusedDecision {
  readonly denied: Refusal;
}

export interface Refusal {
  readonly code: 400 | 403 | 404 | 409 | 500;
  /** KubeVirt's message, without the prefix that Kubernetes adds. */
  readonly message: string;
  readonly on: VerbTarget;
  readonly name: string;
}

export type VerbDecision = AllowedDecision | RefusedDecision;

export const isStateVerb = (verb: SubresourceVerb): boolean =>
  (STATE_VERBS as readonly SubresourceVerb[]).includes(verb);

/** Returns the ApiError for a refusal. */
export function refusalToApiError({ code, message, on, name }: Refusal): ApiError {
  // KubeVirt names the resources in the singular here.
  const resource = { group: KUBEVIRT_GROUP, plural: on };
  switch (code) {
    case 400:
      return badRequest(message);
    case 403:
      return forbidden(resource, name, message);
    case 404:
      return notFound(resource, name);
    case 409:
      return conflict(resource, name, message);
    case 500:
      return internalError(message);
  }
}

/** Messages that refuse a change because a snapshot or restore holds the VM. */
export const HOLD_MESSAGES = {
  runStateBySnapshot: (name: string) => `Cannot update vm running state until snapshot "${name}" completes`,
  disks: (name: string) => `Cannot update vm disks or volumes until snapshot "${name}" completes`,
  runStateByRestore: (name: string) => `Cannot update VM runStrategy until restore "${name}" completes`,
  template: (name: string) => `Cannot update VM template until restore "${name}" completes`,
} as const;

/**
 * The claim that a verb is about. Name and uid must both match, so that users change the very claim that they
 * inspected.
 */
interface NamedClaim {
  readonly name: string;
  readonly uid: string;
}

/** All objects in the namespace of the VM that may use its claims. */
export interface StateWorld {
  readonly claims: readonly Stored<PersistentVolumeClaim>[];
  readonly pods: readonly Stored<Pod>[];
  readonly vms: readonly Stored<VirtualMachine>[];
  readonly vmis: readonly Stored<VirtualMachineInstance>[];
}
