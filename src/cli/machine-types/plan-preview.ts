/** What a transition would do, and what guests would see of it: `--dry-run`. Pure. */
import { runStrategyOf } from '#api/can.ts';
import { AT_THE_START, identityDiff, type Difference } from '#api/identity-diff.ts';
import { lastSeen } from '#api/identity-last-seen.ts';
import type { Configuration } from '#api/kubevirt/configuration.ts';
import type { TransitionOptions } from '#api/machine-types/options.ts';
import {
  hasNewType,
  runningInstance,
  selectVm,
  type SelectContext,
  type Selection,
} from '#api/machine-types/select-vm.ts';
import { obstacle, patchObstacle } from '#api/machine-types/why-not.ts';
import { recordBeforeStart } from '#api/record-before-start.ts';
import type { VirtualMachine } from '#api/virtual-machine/kind.ts';
import type { VirtualMachineIdentity } from '#api/virtual-machine-identity/kind.ts';
import type { VirtualMachineInstance } from '#api/virtual-machine-instance/kind.ts';
import { alignedTable } from '#cli/output-format.ts';
import { isDeleting, type Stored } from '#kube/meta.ts';

export interface Candidate {
  readonly vm: Stored<VirtualMachine>;
  /** Only its own. */
  readonly vmi: Stored<VirtualMachineInstance> | undefined;
  readonly record: Stored<VirtualMachineIdentity> | undefined;
}

export interface PreviewRow {
  readonly namespace: string;
  readonly name: string;
  readonly act: Selection['act'];
  /** What the guest runs on; of one that does not run: what is asked for. */
  readonly from: string;
  /** What it gets at its next start. */
  readonly to: string;
  readonly running: boolean;
  /** What happens to it. */
  readonly what: string;
  /** Why that has to wait. */
  readonly obstacle?: string;
  /** Whether there is a guest that could notice. */
  readonly ran: boolean;
  /** All that the guest will find changed at its next start. */
  readonly differences: readonly Difference[];
}

export interface PreviewContext extends Pick<SelectContext, 'canonical'> {
  readonly configuration: Configuration;
}

/** Undefined for a VM that stays as it is. */
export function previewOf(
  { vm, vmi, record }: Candidate,
  options: TransitionOptions,
  { configuration, canonical = () => undefined }: PreviewContext,
): PreviewRow | undefined {
  const { defaultMachineType: defaultType } = configuration;
  const selection = isDeleting(vm) ? undefined : selectVm(vm, vmi, options, { defaultType, canonical });
  if (selection === undefined) return undefined;
  const running = runningInstance(vm, vmi);
  const isOld = running !== undefined && (selection.act === 'mark' || !hasNewType(selection, running));
  const restarts = isOld && options.restartNow;
  // A mark is set whatever the guest does.
  const why = restarts ? obstacle(vm, vmi) : patchObstacle(vm);
  const after = withType(vm, selection);
  const known = record ?? recordBeforeStart(vm);
  const seen = lastSeen(known, vmi);
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
    differences: withMachine(differences, machine),
  };
}

/** As the Job will leave it. */
function withType(vm: Stored<VirtualMachine>, selection: Selection): Stored<VirtualMachine> {
  if (selection.act === 'mark') return vm;
  const { template } = vm.spec;
  const domain = template.spec?.domain ?? {};
  const machine = { ...domain.machine, type: selection.act === 'set' ? selection.to : '' };
  const spec = { ...template.spec, domain: { ...domain, machine } };
  return { ...vm, spec: { ...vm.spec, template: { ...template, spec } } };
}

/** What an alias stands for, the node decides; today's nodes may all mean the same by it. */
function typeText(type: string, means: string | undefined): string {
  if (means !== undefined) return means === type ? type : `${type} (${means})`;
  return type.includes('.') ? type : `${type} (${AT_THE_START})`;
}

/** One that is to run only once does not come up again. */
const restartVerb = (vm: VirtualMachine) => (runStrategyOf(vm) === 'Once' ? 'stop' : 'restart');

function whatHappens({ act }: Selection, then: string | undefined): string {
  const change = act === 'mark' ? [] : [act === 'set' ? 'set the type' : 'clear the type'];
  return [...change, ...(then === undefined ? [] : [then])].join(', ');
}

interface MachineChange {
  /** Undefined where no guest has seen any. */
  readonly seen: string | undefined;
  /** As far as it is known. */
  readonly next: string;
  /** As it is shown. */
  readonly to: string;
}

/** Who compares words alone finds no difference where an alias stands for another type than the guest has seen. */
function withMachine(differences: readonly Difference[], { seen, next, to }: MachineChange): readonly Difference[] {
  if (differences.some(({ what }) => what === 'machine type')) {
    return differences.map((one) => (one.what === 'machine type' ? { ...one, to } : one));
  }
  if (seen === undefined || seen === next) return differences;
  const why = next.includes('.') ? 'the job changes it' : 'the machine type is looked up anew at every start';
  return [{ what: 'machine type', from: seen, to, why }, ...differences];
}

export function previewText(rows: readonly PreviewRow[], glob: string): string {
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
  return [table, ...more.map(detailText), total].join('\n\n');
}

function detailText({ namespace, name, differences }: PreviewRow): string {
  return [
    `What will change for the guest of ${namespace}/${name} at its next start:`,
    ...differences.map(({ what, from, to, why }) => `  ${what}\n    - ${from}\n    + ${to}\n    # ${why}`),
  ].join('\n');
}
