/**
 * Steps that start, stop and restart a VM. Part of the table in decide-verb.ts, which decides when they are allowed.
 * Pure.
 */
import type { VirtualMachine } from '#api/virtual-machine/kind.ts';
import type { RunStrategy, StateChangeRequest } from '#api/virtual-machine/schema.ts';
import type { VirtualMachineInstance } from '#api/virtual-machine-instance/kind.ts';
import type { Stored } from '#kube/meta.ts';
import type {
  AllowedDecision,
  VerbDecision,
  VerbWorld,
  JsonPatchOperation,
  Refusal,
  RefusedDecision,
  VerbStep,
} from '#api/verbs/verb.ts';

/** The world of verbs that depend on the run strategy of the VM. */
export interface RunStateWorld extends VerbWorld {
  readonly vm: Stored<VirtualMachine>;
  readonly strategy: RunStrategy;
}

/** Allows the change of the run strategy that starts or stops the VM. */
export function switchRunState(vm: Stored<VirtualMachine>, run: boolean): AllowedDecision {
  return { code: 202, allowed: [{ do: 'patchVm', uid: vm.metadata.uid, patch: buildRunPatch(vm, run) }] };
}

/** Builds the patch that starts or stops the VM, in the field that it uses: `running` or `runStrategy`. */
function buildRunPatch({ spec }: Pick<VirtualMachine, 'spec'>, run: boolean): JsonPatchOperation[] {
  const [path, from, to] = !spec.runStrategy
    ? ['/spec/running', spec.running, run]
    : ['/spec/runStrategy', spec.runStrategy, run ? 'Always' : 'Halted'];
  return [
    { op: 'test', path, value: from },
    { op: 'replace', path, value: to },
  ];
}

/**
 * Queues requests. A stop replaces the queued requests, and the stop of an instance can be extended by a start; anything
 * else is refused while there are any. A request also ends the backoff after failed starts.
 */
export function queueRequests(world: RunStateWorld, requests: readonly StateChangeRequest[]): VerbDecision {
  const { vm } = world;
  const { status } = vm;
  const queued = status?.stateChangeRequests ?? [];
  const [first] = requests;
  const stops = requests.length === 1 && first?.action === 'Stop';
  const extendsStop =
    queued.length === 1 && queued[0]?.action === 'Stop' && first?.action === 'Stop' && first.uid === queued[0].uid;
  if (queued.length > 0 && !stops && !extendsStop) {
    return refuseOnVm(world, 500, 'unable to complete request: stop/start already underway');
  }
  const path = '/status/stateChangeRequests';
  const patch: JsonPatchOperation[] =
    status === undefined
      ? [
          { op: 'test', path: '/status', value: null },
          { op: 'add', path: '/status', value: { stateChangeRequests: requests } },
        ]
      : [
          { op: 'test', path, value: status.stateChangeRequests ?? null },
          { op: 'add', path, value: requests },
          ...(status.startFailure === undefined ? [] : [{ op: 'remove', path: '/status/startFailure' } as const]),
        ];
  return { code: 202, allowed: [{ do: 'patchVmStatus', uid: vm.metadata.uid, patch }] };
}

/** Adds steps before those of a decision, if it allows the verb. */
export function prependSteps(first: readonly VerbStep[], next: VerbDecision): VerbDecision {
  return 'denied' in next ? next : { ...next, allowed: [...first, ...next.allowed] };
}

export function refuseOnVm({ name }: VerbWorld, code: Refusal['code'], message: string): RefusedDecision {
  return { denied: { code, message, on: 'virtualmachine', name } };
}

/** Builds the step that changes the grace period of an instance. */
export function buildGracePatch(vmi: Stored<VirtualMachineInstance>, seconds: number): VerbStep {
  const path = '/spec/terminationGracePeriodSeconds';
  const patch: JsonPatchOperation[] = [
    { op: 'test', path, value: vmi.spec.terminationGracePeriodSeconds ?? null },
    { op: 'replace', path, value: seconds },
  ];
  return { do: 'patchVmi', uid: vmi.metadata.uid, patch };
}
