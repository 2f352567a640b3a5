/**
 * Decides whether a transition concerns a VM, and the action. Pure.
 *
 *   the type in the spec matches      → clear it, or set the target
 *   the type of the guest matches     → mark: the next start uses another type anyway
 *   nothing would change              → not selected, so that a job never selects its own results
 */
import { matchesMachineType } from '#api/machine-types/match.ts';
import type { TransitionOptions } from '#api/machine-types/options.ts';
import type { VirtualMachine } from '#api/virtual-machine/kind.ts';
import { type VirtualMachineInstance, isFinal } from '#api/virtual-machine-instance/kind.ts';
import { matchesLabels, parseLabelSelector } from '#kube/selectors/label-selector.ts';
import { controllerUid, type Stored } from '#kube/meta.ts';

/**
 * The action for a VM. `from`: the type in the spec, or '' if unset; for a mark, the type of the guest. `to`: the type
 * that the VM gets at its next start; `gives`: the type that `to` currently resolves to, if it is an alias.
 */
export type VmSelection =
  | { readonly act: 'clear' | 'set'; readonly from: string; readonly to: string; readonly gives?: string }
  | { readonly act: 'mark'; readonly from: string };

export interface SelectContext {
  /** The default machine type of the KubeVirt object. */
  readonly defaultType: string;
  /** Resolves an alias by the current nodes; returns undefined if it is not known. */
  readonly canonical?: (type: string) => string | undefined;
}

type Vm = Stored<VirtualMachine>;
type Vmi = Stored<VirtualMachineInstance>;

export function selectVm(
  vm: Vm,
  vmi: Vmi | undefined,
  options: TransitionOptions,
  context: SelectContext,
): VmSelection | undefined {
  const running = runningInstance(vm, vmi);
  if (!matchesOptions(vm, running, options)) return undefined;
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
  return restartChangesType(running, next, glob, context) ? { act: 'mark', from: runs } : undefined;

  /** Without a target, a spec that names no type, or one that does not match, is left unchanged. */
  function isChosen(): boolean {
    if (target === undefined) return matchesMachineType(glob, spec);
    // Excludes a type that was changed while the guest runs: the user has chosen the next type already.
    const isUnchanged = spec === '' || spec === instanceType(running);
    return matchesMachineType(glob, next) || (isUnchanged && matchesMachineType(glob, runs));
  }
}

/** Reports whether the guest has the new type already, so that a restart is not needed. */
export function hasNewType({ to, gives = to }: { to?: string; gives?: string }, vmi: VirtualMachineInstance): boolean {
  return gives !== undefined && vmi.status?.machine?.type === gives;
}

/** Returns the type in the spec; '' if it is null, empty or absent. */
export function specType({ spec }: Pick<VirtualMachine, 'spec'>): string {
  return spec.template?.spec?.domain?.machine?.type ?? '';
}

/** Returns the type from which the instance was created; it may be an alias. */
export function instanceType(vmi: Pick<VirtualMachineInstance, 'spec'> | undefined): string {
  return vmi?.spec.domain.machine?.type ?? '';
}

/** Returns the VM's own instance, unless it has ended. */
export function runningInstance(vm: Vm, vmi: Vmi | undefined): Vmi | undefined {
  return vmi !== undefined && controllerUid(vmi) === vm.metadata.uid && !isFinal(vmi) ? vmi : undefined;
}

function matchesOptions({ metadata }: Vm, running: Vmi | undefined, options: TransitionOptions): boolean {
  const { namespace, name, labelSelector, state } = options;
  if (namespace !== undefined && metadata.namespace !== namespace) return false;
  if (name !== undefined && metadata.name !== name) return false;
  if (state !== undefined && (running !== undefined) !== (state === 'running')) return false;
  return labelSelector === undefined || matchesLabels(parseLabelSelector(labelSelector), metadata.labels);
}

/**
 * Reports whether a start with the type `next` gives the guest another type. An alias that cannot be resolved counts as
 * a change, unless it matches the glob itself: then its type would match again.
 */
function restartChangesType(running: Vmi, next: string, glob: string, { canonical }: SelectContext): boolean {
  const runs = running.status?.machine?.type;
  if (next === runs) return false;
  const known = canonical?.(next);
  if (known !== undefined) return known !== runs;
  return next !== instanceType(running) || !matchesMachineType(glob, next);
}
