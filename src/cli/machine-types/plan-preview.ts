/** Previews a transition and what guests would see of it, for `--dry-run`. Pure. */
import { identityDiff } from '#api/identity/identity-diff.ts';
import { collectLastSeen, RESOLVED_AT_START, type Difference } from '#api/identity/identity-last-seen.ts';
import type { Configuration } from '#api/kubevirt/configuration.ts';
import type { TransitionOptions } from '#api/machine-types/options.ts';
import {
  hasNewType,
  runningInstance,
  selectVm,
  type SelectContext,
  type VmSelection,
} from '#api/machine-types/select-vm.ts';
import { findRestartRefusal, findPatchRefusal } from '#api/machine-types/find-refusal.ts';
import { predictRecord } from '#api/identity/predict-record.ts';
import { type VirtualMachine, runStrategyOf } from '#api/virtual-machine/kind.ts';
import type { VirtualMachineIdentity } from '#api/virtual-machine-identity/kind.ts';
import type { VirtualMachineInstance } from '#api/virtual-machine-instance/kind.ts';
import { differenceText } from '#cli/difference-text.ts';
import { withoutColours, type Painter } from '#lib/terminal/colour.ts';
import { alignedTable } from '#lib/terminal/table.ts';
import { isDeleting, type Stored } from '#kube/meta.ts';

export interface PreviewCandidate {
  readonly vm: Stored<VirtualMachine>;
  /** The instance that belongs to the VM. */
  readonly vmi: Stored<VirtualMachineInstance> | undefined;
  readonly record: Stored<VirtualMachineIdentity> | undefined;
}

/** A row of the preview. Its keys are part of the JSON output. */
interface PreviewRow {
  readonly namespace: string;
  readonly name: string;
  readonly act: VmSelection['act'];
  /** The machine type that the guest runs with, or the type in the spec if it does not run. */
  readonly from: string;
  /** The machine type of the next start. */
  readonly to: string;
  readonly running: boolean;
  /** The action of the Job on the VM. */
  readonly what: string;
  /** Why the Job has to wait, if it does. */
  readonly obstacle?: string;
  /** True if the VM has run, so that its guest can notice a change. */
  readonly ran: boolean;
  /** Everything that will change for the guest at its next start. */
  readonly differences: readonly Difference[];
}

export interface PreviewContext extends Pick<SelectContext, 'canonical'> {
  readonly configuration: Configuration;
}

/** Returns undefined for a VM that does not change. */
export function previewVm(
  { vm, vmi, record }: PreviewCandidate,
  options: TransitionOptions,
  { configuration, canonical = () => undefined }: PreviewContext,
): PreviewRow | undefined {
  const { defaultMachineType: defaultType } = configuration;
  const selection = isDeleting(vm) ? undefined : selectVm(vm, vmi, options, { defaultType, canonical });
  if (selection === undefined) return undefined;
  const running = runningInstance(vm, vmi);
  const isOld = running !== undefined && (selection.act === 'mark' || !hasNewType(selection, running));
  const restarts = isOld && options.restartNow;
  // A mark can always be set; only a restart depends on the state of the guest.
  const why = restarts ? findRestartRefusal(vm, vmi) : findPatchRefusal(vm);
  const after = setMachineType(vm, selection);
  const known = record ?? predictRecord(vm);
  const seen = collectLastSeen(known, vmi);
  const next = after.spec.template.spec?.domain.machine?.type || defaultType;
  const to = typeText(next, canonical(next));
  const differences = identityDiff({ vm: after, record: known, vmi, configuration });
  const machine = { seen: seen?.machine, next: canonical(next) ?? next, to };
  return {
    namespace: vm.metadata.namespace ?? '',
    name: vm.metadata.name,
    act: selection.act,
    from: running?.status?.machine?.type || selection.from || defaultType,
    to,
    running: running !== undefined,
    what: whatHappens(selection, isOld ? (restarts ? restartVerb(vm) : 'mark: restart required') : undefined),
    ...(why !== undefined && { obstacle: why }),
    ran: seen !== undefined,
    differences: setMachineDifference(differences, machine),
  };
}

/** Returns the VM as the Job will change it. */
function setMachineType(vm: Stored<VirtualMachine>, selection: VmSelection): Stored<VirtualMachine> {
  if (selection.act === 'mark') return vm;
  const { template } = vm.spec;
  const domain = template.spec?.domain ?? {};
  const machine = { ...domain.machine, type: selection.act === 'set' ? selection.to : '' };
  const spec = { ...template.spec, domain: { ...domain, machine } };
  return { ...vm, spec: { ...vm.spec, template: { ...template, spec } } };
}

/** Renders a type. Nodes resolve aliases; the resolved type is shown if all nodes agree on it. */
function typeText(type: string, means: string | undefined): string {
  if (means !== undefined) return means === type ? type : `${type} (${means})`;
  return type.includes('.') ? type : `${type} (${RESOLVED_AT_START})`;
}

/** A VM with run strategy Once does not start again. */
const restartVerb = (vm: VirtualMachine) => (runStrategyOf(vm) === 'Once' ? 'stop' : 'restart');

function whatHappens({ act }: VmSelection, then: string | undefined): string {
  const change = act === 'mark' ? [] : [act === 'set' ? 'set the type' : 'clear the type'];
  return [...change, ...(then === undefined ? [] : [then])].join(', ');
}

interface MachineChange {
  /** The type that the guest last saw; undefined if it never ran. */
  readonly seen: string | undefined;
  /** The type of the next start, resolved if possible. */
  readonly next: string;
  /** The type of the next start as text. */
  readonly to: string;
}

/** Adds a difference that a comparison of names misses: an alias that now resolves to another type. */
function setMachineDifference(
  differences: readonly Difference[],
  { seen, next, to }: MachineChange,
): readonly Difference[] {
  if (differences.some(({ what }) => what === 'machine type')) {
    return differences.map((one) => (one.what === 'machine type' ? { ...one, to } : one));
  }
  if (seen === undefined || seen === next) return differences;
  const why = next.includes('.')
    ? 'the job changes it'
    : 'the machine type is an alias that is resolved at every start';
  return [{ what: 'machine type', from: seen, to, why }, ...differences];
}

export function previewText(rows: readonly PreviewRow[], glob: string, paint: Painter = withoutColours): string {
  if (rows.length === 0) {
    const matching = `a machine type that matches ${JSON.stringify(glob)}`;
    return `No VM needs a change: no selected VM has ${matching} and would get another type.`;
  }
  const table = alignedTable([
    ['NAMESPACE', 'NAME', 'NOW', 'THEN', 'RUNNING', 'WHAT HAPPENS', 'GUEST SEES'],
    ...rows.map(({ namespace, name, from, to, running, what, obstacle: why, ran, differences }) => [
      namespace,
      name,
      from,
      to,
      running ? 'yes' : 'no',
      why === undefined ? what : `${what} (waits: ${why})`,
      differences.map((one) => one.what).join(', ') || (ran ? 'no difference' : 'nothing: it never ran'),
    ]),
  ]);
  const more = rows.filter(({ differences }) => differences.some(({ what }) => what !== 'machine type'));
  const running = rows.filter((row) => row.running).length;
  const total = `${rows.length} VM${rows.length === 1 ? '' : 's'}, ${running} of them running. Nothing was changed.`;
  return [table, ...more.map((row) => detailText(row, paint)), total].join('\n\n');
}

function detailText({ namespace, name, differences }: PreviewRow, paint: Painter): string {
  return [
    `What will change for the guest of ${namespace}/${name} at its next start:`,
    ...differences.map((difference) => differenceText(difference, paint, '  ')),
  ].join('\n');
}
