/** Computes the printable status of a VM: the first of PRINTABLE_STATUSES that applies. Pure. */
import { isMigrating } from '#api/migration/migration-state.ts';
import { PRINTABLE_STATUSES, type PrintableStatus } from '#api/virtual-machine/schema.ts';
import { runActionOf } from '#controllers/vm/start/run-strategy.ts';
import { startFailureOf } from '#controllers/vm/start/start-failure.ts';
import { type VirtualMachineInstance, isFinal } from '#api/virtual-machine-instance/kind.ts';
import type { VmWorld } from '#controllers/vm/vm-world.ts';
import { findCondition, isTrue } from '#kube/conditions.ts';
import { isDeleting } from '#kube/meta.ts';

export function printableStatusOf(world: VmWorld): PrintableStatus {
  return PRINTABLE_STATUSES.find((status) => APPLIES[status](world)) ?? 'Unknown';
}

const never = (): boolean => false;

const APPLIES: Readonly<Record<PrintableStatus, (world: VmWorld) => boolean>> = {
  Terminating: ({ vm }) => isDeleting(vm),
  Stopping: (world) => {
    const { vmi } = world;
    return vmi !== undefined && !isFinal(vmi) && (isDeleting(vmi) || runActionOf(world).kind === 'stop');
  },
  Migrating: ({ vmi }) => vmi?.status?.phase === 'Running' && isMigrating(vmi.status.migrationState),
  Paused: ({ vmi }) => vmi?.status?.phase === 'Running' && isTrue(vmi.status.conditions, 'Paused'),
  Running: ({ vmi }) => vmi?.status?.phase === 'Running',
  ErrorPvcNotFound: (world) => isStarting(world.vmi) && (isBlockedBy(world, 'FailedPvcNotFound') || lacksClaim(world)),
  DataVolumeError: never,
  ErrorUnschedulable: ({ vmi }) => {
    const scheduled = findCondition(vmi?.status?.conditions, 'PodScheduled');
    return scheduled?.status === 'False' && scheduled.reason === 'Unschedulable';
  },
  Provisioning: never,
  WaitingForVolumeBinding: (world) => (isStarting(world.vmi) || isAboutToStart(world)) && hasUnboundClaim(world),
  ErrImagePull: (world) => isBlockedBy(world, 'ErrImagePull'),
  ImagePullBackOff: (world) => isBlockedBy(world, 'ImagePullBackOff'),
  Starting: (world) => isStarting(world.vmi) || isAboutToStart(world),
  CrashLoopBackOff: (world) => (world.vmi === undefined || isFinal(world.vmi)) && startFailureOf(world) !== undefined,
  Stopped: ({ vmi }) => vmi === undefined || isFinal(vmi),
  WaitingForReceiver: never,
  Unknown: () => true,
};

function isStarting(vmi: VirtualMachineInstance | undefined): boolean {
  if (vmi === undefined) return false;
  const { phase = 'Pending' } = vmi.status ?? {};
  return phase === 'Pending' || phase === 'Scheduling' || phase === 'Scheduled';
}

function isAboutToStart(world: VmWorld): boolean {
  const { kind } = runActionOf(world);
  return kind === 'start' || kind === 'setAlways';
}

function isBlockedBy({ vmi }: VmWorld, reason: string): boolean {
  const synchronized = findCondition(vmi?.status?.conditions, 'Synchronized');
  return synchronized?.status === 'False' && synchronized.reason === reason;
}

function lacksClaim({ claims }: VmWorld): boolean {
  return claims.some(({ claim }) => claim === undefined);
}

function hasUnboundClaim({ claims }: VmWorld): boolean {
  return claims.some(({ claim }) => claim !== undefined && claim.status?.phase !== 'Bound');
}
