/**
 * Whether a transition concerns a VM, and what it does about it. Pure.
 *
 *   the spec's type matches           → clear it, or set the target
 *   what the guest runs on matches    → mark: the next start takes another type anyhow
 *   nothing would change              → not selected, so that a job never finds its own work again
 */
import { isFinal } from '#api/can.ts';
import { matchesMachineType } from '#api/machine-types/match.ts';
import type { TransitionOptions } from '#api/machine-types/options.ts';
import type { VirtualMachine } from '#api/virtual-machine/kind.ts';
import type { VirtualMachineInstance } from '#api/virtual-machine-instance/kind.ts';
import { matchesLabels, parseLabelSelector } from '#kube/label-selector.ts';
import { controllerUid, type Stored } from '#kube/meta.ts';

/**
 * `from`: what the spec says, '' for nothing; of a mark: what the guest runs on. `to`: what the VM gets at its next start;
 * `gives`: what that stands for today, where it is an alias.
 */
export type Selection =
  | { readonly act: 'clear' | 'set'; readonly from: string; readonly to: string; readonly gives?: string }
  | { readonly act: 'mark'; readonly from: string };

export interface SelectContext {
  /** Of the KubeVirt object. */
  readonly defaultType: string;
  /** What an alias stands for on the nodes of today; undefined where that is not known. */
  readonly canonical?: (type: string) => string | undefined;
}

type Vm = Stored<VirtualMachine>;
type Vmi = Stored<VirtualMachineInstance>;

export function selectVm(
  vm: Vm,
  vmi: Vmi | undefined,
  options: TransitionOptions,
  context: SelectContext,
): Selection | undefined {
  const running = runningInstance(vm, vmi);
  if (!isMeant(vm, running, options)) return undefined;
  const { glob, target } = options;
  const spec = specType(vm);
  const runs = running?.status?.machine?.type ?? '';
  const next = spec || context.defaultType;
  const to = target ?? context.defaultType;
  if (to !== next && isChosen()) {
    const gives = context.canonical?.(to) ?? to;
    return { act: target === undefined ? 'clear' : 'set', from: spec, to, ...(gives !== to && { gives }) };
  }
  if (running === undefined || !matchesMachineType(glob, runs)) return undefined;
  return restartChanges(running, next, glob, context) ? { act: 'mark', from: runs } : undefined;

  /** Without a target there is nothing to change about a spec that names no type, or one that does not match. */
  function isChosen(): boolean {
    if (target === undefined) return matchesMachineType(glob, spec);
    // Not one that was changed while the guest runs: somebody has decided what comes next.
    const sameWord = spec === '' || spec === instanceType(running);
    return matchesMachineType(glob, next) || (sameWord && matchesMachineType(glob, runs));
  }
}

/** A guest that has the new type already has nothing to gain from a restart. */
export function hasNewType({ to, gives = to }: { to?: string; gives?: string }, vmi: VirtualMachineInstance): boolean {
  return gives !== undefined && vmi.status?.machine?.type === gives;
}

/** Null, "" and absent mean the same: ''. */
export function specType({ spec }: Pick<VirtualMachine, 'spec'>): string {
  return spec.template?.spec?.domain?.machine?.type ?? '';
}

/** The word from which the instance was made; it may be an alias. */
export function instanceType(vmi: Pick<VirtualMachineInstance, 'spec'> | undefined): string {
  return vmi?.spec.domain.machine?.type ?? '';
}

/** The VM's own, unless it has come to its end. */
export function runningInstance(vm: Vm, vmi: Vmi | undefined): Vmi | undefined {
  return vmi !== undefined && controllerUid(vmi) === vm.metadata.uid && !isFinal(vmi) ? vmi : undefined;
}

function isMeant({ metadata }: Vm, running: Vmi | undefined, options: TransitionOptions): boolean {
  const { namespace, name, labelSelector, state } = options;
  if (namespace !== undefined && metadata.namespace !== namespace) return false;
  if (name !== undefined && metadata.name !== name) return false;
  if (state !== undefined && (running !== undefined) !== (state === 'running')) return false;
  return labelSelector === undefined || matchesLabels(parseLabelSelector(labelSelector), metadata.labels);
}

/**
 * Whether a start with the type `next` gives the guest another one. An alias of which nobody knows what it stands for
 * today counts as changed, unless it matches the glob itself: what it gives then would match again.
 */
function restartChanges(running: Vmi, next: string, glob: string, { canonical }: SelectContext): boolean {
  const runs = running.status?.machine?.type;
  if (next === runs) return false;
  const known = canonical?.(next);
  if (known !== undefined) return known !== runs;
  return next !== instanceType(running) || !matchesMachineType(glob, next);
}
