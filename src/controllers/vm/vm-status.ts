/** The whole status of a VM, computed from the world. Pure. */
import { runStrategyOf } from '#api/can.ts';
import { restartMarkOf, type RestartMark } from '#api/machine-types/restart-mark.ts';
import type { VmStatus } from '#api/virtual-machine/schema.ts';
import { conditionsOf, type Trouble } from '#controllers/vm/conditions.ts';
import { recordMemory } from '#controllers/vm/lost-record.ts';
import { printableStatusOf } from '#controllers/vm/printable-status.ts';
import { protectionStatus } from '#controllers/vm/protection.ts';
import { observedGeneration } from '#controllers/vm/restart-required.ts';
import { startFailureOf } from '#controllers/vm/start-failure.ts';
import { requestsOf } from '#controllers/vm/state-change-requests.ts';
import { troubleOf } from '#controllers/vm/trouble.ts';
import type { VmWorld } from '#controllers/vm/vm-world.ts';
import { isTrue } from '#kube/conditions.ts';

export function vmStatusOf(world: VmWorld, trouble: Trouble | undefined = troubleOf(world)): VmStatus {
  const { vm, vmi, lock } = world;
  const requests = requestsOf(world);
  const startFailure = startFailureOf(world);
  const runStrategy = rememberedStrategy(world);
  return {
    created: vmi !== undefined,
    ready: isTrue(vmi?.status?.conditions, 'Ready'),
    printableStatus: printableStatusOf(world),
    conditions: conditionsOf(world, trouble ?? failedStart(startFailure)),
    ...(requests.length === 0 ? {} : { stateChangeRequests: [...requests] }),
    ...(startFailure === undefined ? {} : { startFailure }),
    observedGeneration: observedGeneration(world),
    desiredGeneration: vm.metadata.generation,
    ...(runStrategy === undefined ? {} : { runStrategy }),
    ...(lock?.kind === 'snapshot' ? { snapshotInProgress: lock.name } : {}),
    ...(lock?.kind === 'restore' ? { restoreInProgress: lock.name } : {}),
    ...recordMemory(world),
    ...protectionStatus(world),
    ...restartMark(world),
  };
}

/** The transition Job sets it; here it goes when its instance is gone, also where no Job is there any more. */
function restartMark({ vm, vmi, markedInstance }: VmWorld): RestartMark {
  return restartMarkOf(vm, markedInstance ?? vmi);
}

/** The instance that failed is gone by then: what it said of that is told here until a start succeeds. */
function failedStart(failure: VmStatus['startFailure']): Trouble | undefined {
  if (!failure?.message) return undefined;
  return { reason: failure.reason ?? 'StartFailed', message: `The last start failed: ${failure.message}` };
}

/**
 * The strategy under which the VM last had an instance, or has none. RerunOnFailure is remembered only with an instance:
 * it starts a VM that never had one under it, and a crash before that must not make it forget.
 */
function rememberedStrategy({ vm, vmi }: VmWorld): string | undefined {
  const known = vm.status?.runStrategy;
  const strategy = runStrategyOf(vm);
  if (vmi !== undefined) return strategy;
  return known === undefined || strategy === 'RerunOnFailure' ? known : strategy;
}
