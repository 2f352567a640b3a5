/**
 * The table of all verbs: when each is allowed, and the steps that it consists of, as data. The subresources execute
 * the steps; a CLI or a dashboard can ask the same table beforehand. Codes and messages are KubeVirt's own, because its
 * clients match them. Pure: the caller reads the objects and writes the changes.
 */
import {
  checkDisplay,
  checkForwardTarget,
  checkPortForward,
  checkGuestAgent,
  checkConsole,
  checkPause,
  checkReset,
  checkSoftReboot,
  checkUnpause,
  unlessMigrating,
  type InstanceRefusal,
} from '#api/verbs/check-instance.ts';
import { decideReleaseDisk } from '#api/verbs/decide-release-disk.ts';
import { decideAdoptState, decideReleaseState } from '#api/verbs/decide-state.ts';
import {
  decideAddVolume,
  decideAddVolumeToInstance,
  decideRemoveVolume,
  decideRemoveVolumeFromInstance,
} from '#api/verbs/decide-volumes.ts';
import {
  buildGracePatch,
  prependSteps,
  queueRequests,
  refuseOnVm,
  switchRunState,
  type RunStateWorld,
} from '#api/verbs/run-state-steps.ts';
import { awaitsGuest, findClaimDeletion } from '#api/virtual-machine/claim-deletion.ts';
import { isMigrating } from '#api/migration/migration-state.ts';
import type { StateChangeRequest } from '#api/virtual-machine/schema.ts';
import { type VirtualMachineInstance, isFinal } from '#api/virtual-machine-instance/kind.ts';
import { controllerUid, isDeleting } from '#kube/meta.ts';
import { invariant } from '#lib/invariant.ts';
import {
  VM_VERBS,
  VMI_VERBS,
  type VmVerb,
  type VmiVerb,
  type SubresourceVerb,
  type VerbTarget,
  type VerbWorld,
  type VerbStep,
  type RefusedDecision,
  type VerbDecision,
  HOLD_MESSAGES,
  type Refusal,
} from '#api/verbs/verb.ts';
import { runStrategyOf } from '#api/virtual-machine/kind.ts';

/** Decides whether a verb is allowed. `on` selects the kind for verbs that exist on both; the default is the VM. */
export function decideVerb(verb: SubresourceVerb, world: VerbWorld, on?: VerbTarget): VerbDecision {
  const ofVm = isVmVerb(verb) && on !== 'virtualmachineinstance' ? VM_DECISIONS[verb] : undefined;
  const decide = ofVm ?? (isVmiVerb(verb) ? VMI_DECISIONS[verb] : undefined);
  invariant(decide !== undefined, `${verb} is a verb of ${on ?? 'a VM or an instance'}`);
  return decide(world);
}
const isVmVerb = (verb: SubresourceVerb): verb is VmVerb => (VM_VERBS as readonly SubresourceVerb[]).includes(verb);
const isVmiVerb = (verb: SubresourceVerb): verb is VmiVerb => (VMI_VERBS as readonly SubresourceVerb[]).includes(verb);

type Decide = (world: VerbWorld) => VerbDecision;

const VM_DECISIONS: Readonly<Record<VmVerb, Decide>> = {
  start: (world) => checkHold(world, { stops: false }) ?? decideOnVm(world, decideStart),
  stop: (world) => checkHold(world, { stops: true }) ?? decideOnVm(world, decideStop),
  restart: (world) =>
    checkGracePeriod(world) ??
    checkHold(world, { stops: false }) ??
    checkDeletedClaims(world) ??
    decideOnVm(world, decideRestart),
  migrate: decideMigrateVerb,
  addvolume: (world) => checkDiskHold(world, 'virtualmachine') ?? decideAddVolume(world),
  removevolume: (world) => checkDiskHold(world, 'virtualmachine') ?? decideRemoveVolume(world),
  portforward: (world) => checkForwardTarget(world) ?? decideOnVmi(world, 'portforward', checkPortForward),
  releasedisk: decideReleaseDisk,
  adoptstate: (world) => checkDiskHold(world, 'virtualmachine') ?? decideAdoptState(world),
  releasestate: (world) => checkDiskHold(world, 'virtualmachine') ?? decideReleaseState(world),
};

const VMI_DECISIONS: Readonly<Record<VmiVerb, Decide>> = {
  pause: (world) => decideOnVmi(world, 'pause', unlessMigrating(checkPause)),
  unpause: (world) => decideOnVmi(world, 'unpause', unlessMigrating(checkUnpause)),
  freeze: (world) => decideOnVmi(world, 'freeze', unlessMigrating(checkGuestAgent)),
  unfreeze: (world) => decideOnVmi(world, 'unfreeze', unlessMigrating(checkGuestAgent)),
  guestosinfo: (world) => decideOnVmi(world, 'guestosinfo', checkGuestAgent),
  userlist: (world) => decideOnVmi(world, 'userlist', checkGuestAgent),
  filesystemlist: (world) => decideOnVmi(world, 'filesystemlist', checkGuestAgent),
  softreboot: (world) => decideOnVmi(world, 'softreboot', unlessMigrating(checkSoftReboot)),
  reset: (world) => decideOnVmi(world, 'reset', unlessMigrating(checkReset)),
  console: (world) => decideOnVmi(world, 'console', checkConsole),
  addvolume: (world) => checkDiskHold(world, 'virtualmachineinstance') ?? decideAddVolumeToInstance(world),
  removevolume: (world) => checkDiskHold(world, 'virtualmachineinstance') ?? decideRemoveVolumeFromInstance(world),
  vnc: (world) => decideOnVmi(world, 'vnc', checkDisplay),
  'vnc/screenshot': (world) => decideOnVmi(world, 'vnc/screenshot', checkDisplay),
  portforward: (world) => decideOnVmi(world, 'portforward', checkPortForward),
};

function decideOnVm(world: VerbWorld, decide: (world: RunStateWorld) => VerbDecision): VerbDecision {
  const { vm, name } = world;
  if (vm === undefined) return { denied: { code: 404, message: 'not found', on: 'virtualmachine', name } };
  const strategy = runStrategyOf(vm);
  if (strategy === undefined) return refuseOnVm(world, 500, `Invalid RunStrategy (${vm.spec.runStrategy ?? ''})`);
  return decide({ ...world, vm, strategy });
}

/**
 * Refuses changes of the running state. A restore still allows stopping: it may be waiting until the user stops the VM.
 * So does a snapshot that waits for the start of the guest: perhaps the guest can never start.
 */
function checkHold(world: VerbWorld, { stops }: { readonly stops: boolean }): RefusedDecision | undefined {
  const { snapshotInProgress, restoreInProgress } = world.vm?.status ?? {};
  if (snapshotInProgress && !(stops && world.vm !== undefined && awaitsGuest(world.vm))) {
    return refuseOnVm(world, 409, HOLD_MESSAGES.runStateBySnapshot(snapshotInProgress));
  }
  return restoreInProgress && !stops
    ? refuseOnVm(world, 409, HOLD_MESSAGES.runStateByRestore(restoreInProgress))
    : undefined;
}

/** Refuses a restart that would delete a disk: the VM could not start again. Stopping is always allowed. */
function checkDeletedClaims(world: VerbWorld): RefusedDecision | undefined {
  const deletion = world.vm === undefined ? undefined : findClaimDeletion(world.vm);
  return deletion === undefined ? undefined : refuseOnVm(world, 409, `Cannot restart the VM: ${deletion}`);
}

/**
 * Refuses changes of disks during a snapshot, including disks that only the instance has, and during a migration,
 * because source and target must have the same disks.
 */
function checkDiskHold({ name, vm, vmi }: VerbWorld, on: VerbTarget): RefusedDecision | undefined {
  const related = vmi !== undefined && vm?.metadata.uid === controllerUid(vmi);
  const concerned = on === 'virtualmachine' || related;
  if (isMigrating(vmi?.status?.migrationState) && (on === 'virtualmachineinstance' || related)) {
    return { denied: { code: 409, message: 'VM has an active migration', on, name } };
  }
  const { snapshotInProgress, restoreInProgress } = (concerned ? vm?.status : undefined) ?? {};
  if (snapshotInProgress) return { denied: { code: 409, message: HOLD_MESSAGES.disks(snapshotInProgress), on, name } };
  if (!restoreInProgress) return undefined;
  return { denied: { code: 409, message: HOLD_MESSAGES.template(restoreInProgress), on, name } };
}

function decideStart(world: RunStateWorld): VerbDecision {
  const { vm, vmi, strategy, options } = world;
  const phase = vmi?.status?.phase;
  const stops = isStopping(world);
  if (!stops && vmi !== undefined && phase !== undefined && phase !== 'Unknown' && !isFinal(vmi)) {
    return refuseOnVm(world, 409, 'VM is already running');
  }
  const request: StateChangeRequest =
    options?.paused === true ? { action: 'Start', data: { paused: 'true' } } : { action: 'Start' };
  switch (strategy) {
    case 'Halted':
      // Only requests can record that the start is paused, or that a stop which has not begun comes first. The VM
      // controller then changes the strategy.
      if (options?.paused === true || (stops && vmi !== undefined && !isDeleting(vmi))) {
        return queueRequests(world, startRequests(world, request));
      }
      return switchRunState(vm, true);
    case 'Always':
    case 'Once':
      return refuseOnVm(world, 409, `${strategy} does not support manual start requests`);
    case 'RerunOnFailure':
      if (phase === 'Failed')
        return refuseOnVm(world, 409, `${strategy} does not support starting VM from failed state`);
      return queueRequests(world, startRequests(world, request));
    case 'Manual':
      return queueRequests(world, startRequests(world, request));
  }
}

/**
 * Reports whether the instance of the VM is being deleted, or will be. KubeVirt calls such a VM running and refuses to
 * start it; here it starts when the instance is gone.
 */
function isStopping(world: RunStateWorld): boolean {
  const vmi = findOwnInstance(world);
  if (vmi === undefined || isFinal(vmi)) return false;
  const [first] = world.vm.status?.stateChangeRequests ?? [];
  const isStopNext = first?.action === 'Stop' && first.uid === vmi.metadata.uid;
  return isDeleting(vmi) || world.strategy === 'Halted' || isStopNext;
}

/** Requests the removal of a finished or stopping instance first: it has the name that the new instance needs. */
function startRequests(world: RunStateWorld, request: StateChangeRequest): StateChangeRequest[] {
  const { vmi } = world;
  const isInTheWay = vmi !== undefined && (isFinal(vmi) || isStopping(world));
  return isInTheWay ? [{ action: 'Stop', uid: vmi.metadata.uid }, request] : [request];
}

/**
 * Returns the VM's own instance. Undefined for one that only shares the name: permission to stop the VM does not cover
 * it.
 */
function findOwnInstance({ vm, vmi }: RunStateWorld): VerbWorld['vmi'] {
  return vmi !== undefined && controllerUid(vmi) === vm.metadata.uid ? vmi : undefined;
}

function decideStop(world: RunStateWorld): VerbDecision {
  const { vm, strategy, options } = world;
  const vmi = findOwnInstance(world);
  const runs = vmi !== undefined && !isFinal(vmi);
  const shorter = runs && options?.gracePeriod !== undefined ? [buildGracePatch(vmi, options.gracePeriod)] : [];
  if (strategy === 'Always' || strategy === 'Once') return prependSteps(shorter, switchRunState(vm, false));
  if (!runs) return refuseOnVm(world, 409, 'VM is not running');
  // A start may be queued behind the stop (decideStart): another stop withdraws it.
  const isStartQueued = vm.status?.stateChangeRequests?.some(({ action }) => action === 'Start') === true;
  if (strategy === 'Halted' && !isStartQueued && !isShorter(vmi, options?.gracePeriod)) {
    return refuseOnVm(world, 409, `${strategy} only supports manual stop requests with a shorter graceperiod`);
  }
  return prependSteps(shorter, queueRequests(world, [{ action: 'Stop', uid: vmi.metadata.uid }]));
}

function isShorter({ spec }: VirtualMachineInstance, seconds: number | undefined): boolean {
  const now = spec.terminationGracePeriodSeconds;
  return seconds !== undefined && (now === undefined || seconds < now);
}

function checkGracePeriod(world: VerbWorld): RefusedDecision | undefined {
  const seconds = world.options?.gracePeriodSeconds ?? 0;
  if (seconds > 0) return refuseOnVm(world, 400, 'For force restart, only gracePeriod=0 is supported for now');
  return seconds < 0 ? refuseOnVm(world, 400, 'gracePeriod has to be greater or equal to 0') : undefined;
}

/** KubeVirt's forced restart gives the pod one second. */
const FORCED_RESTART_GRACE_SECONDS = 1;

function decideRestart(world: RunStateWorld): VerbDecision {
  const { strategy, options } = world;
  const vmi = findOwnInstance(world);
  if (strategy === 'Halted' || strategy === 'Once') {
    return refuseOnVm(world, 409, `RunStategy ${strategy} does not support manual restart requests`);
  }
  if (vmi === undefined) return refuseOnVm(world, 409, 'VM is not running: Halted');
  const queued = queueRequests(world, [{ action: 'Stop', uid: vmi.metadata.uid }, { action: 'Start' }]);
  if ('denied' in queued || options?.gracePeriodSeconds === undefined) return queued;
  const gracePeriodSeconds = FORCED_RESTART_GRACE_SECONDS;
  const force: VerbStep = { do: 'deletePod', vmiUid: vmi.metadata.uid, gracePeriodSeconds };
  // The node agent reads the grace period from the instance, as for a stop.
  return { code: 202, allowed: [buildGracePatch(vmi, 0), ...queued.allowed, force] };
}

function decideOnVmi(
  world: VerbWorld,
  verb: VmiVerb,
  refuse: (vmi: VirtualMachineInstance) => InstanceRefusal,
): VerbDecision {
  const { vmi, name } = world;
  const on = 'virtualmachineinstance';
  if (vmi === undefined) return { denied: { code: 404, message: 'not found', on, name } };
  const refusal = refuse(vmi);
  if (refusal !== undefined) return { denied: { ...refusal, on, name } };
  return { code: 200, allowed: [{ do: 'callNode', verb, nodeName: vmi.status?.nodeName ?? '' }] };
}

/** Admission decides whether the instance is migratable and whether another migration is running. */
function decideMigrateVerb(world: VerbWorld): VerbDecision {
  const { name, vm, vmi, options } = world;
  if (vm === undefined) return refuse(world, 'virtualmachine', 404, 'not found');
  // An instance that only shares the VM's name: permission to migrate the VM does not cover it.
  if (vmi === undefined || controllerUid(vmi) !== vm.metadata.uid) {
    return refuse(world, 'virtualmachineinstance', 404, 'not found');
  }
  if (vmi.status?.phase !== 'Running') return refuse(world, 'virtualmachine', 409, 'VM is not running');
  const { addedNodeSelector } = options ?? {};
  const spec = { vmiName: name, ...(addedNodeSelector === undefined ? {} : { addedNodeSelector }) };
  return { code: 202, allowed: [{ do: 'createMigration', generateName: 'kubevirt-migrate-vm-', spec }] };
}

function refuse({ name }: VerbWorld, on: VerbTarget, code: Refusal['code'], message: string): RefusedDecision {
  return { denied: { code, message, on, name } };
}
