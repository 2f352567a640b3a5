/** What a transition would do, and what guests would see of it: `--dry-run`. Pure. */
import { AT_THE_START, identityDiff, type Difference } from '#api/identity-diff.ts';
import type { Configuration } from '#api/kubevirt/configuration.ts';
import type { TransitionOptions } from '#api/machine-types/options.ts';
import { runningInstance, selectVm, type Selection } from '#api/machine-types/select-vm.ts';
import { obstacle } from '#api/machine-types/why-not.ts';
import { recordBeforeStart } from '#api/record-before-start.ts';
import type { VirtualMachine } from '#api/virtual-machine/kind.ts';
import type { VirtualMachineIdentity } from '#api/virtual-machine-identity/kind.ts';
import type { VirtualMachineInstance } from '#api/virtual-machine-instance/kind.ts';

import { alignedTable } from '#cli/output-format.ts';
import type { Stored } from '#kube/meta.ts';

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
  /** All that the guest will find changed at its next start, the machine type first. */
  readonly differences: readonly Difference[];
}

/** Undefined for a VM that stays as it is. */
export function previewOf(
  { vm, vmi, record }: Candidate,
  options: TransitionOptions,
  configuration: Configuration,
): PreviewRow | undefined {
  const { defaultMachineType: defaultType } = configuration;
  const selection = selectVm(vm, vmi, options, { defaultType });
  if (selection === undefined) return undefined;
  const running = runningInstance(vm, vmi);
  const why = obstacle(vm, vmi);
  const after = withType(vm, selection);
  const seen = identityDiff({ vm: after, record: record ?? recordBeforeStart(vm), vmi, configuration });
  const to = thenType(after, defaultType);
  return {
    namespace: vm.metadata.namespace ?? '',
    name: vm.metadata.name,
    act: selection.act,
    from: running?.status?.machine?.type || selection.from || defaultType,
    to,
    running: running !== undefined,
    what: whatHappens(selection, running !== undefined, options.restartNow),
    ...(why !== undefined && { obstacle: why }),
    differences: withAlias(seen, selection, to),
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

/** What an alias stands for, the node decides. */
function thenType({ spec }: VirtualMachine, defaultType: string): string {
  const type = spec.template.spec?.domain.machine?.type || defaultType;
  return type.includes('.') ? type : `${type} (${AT_THE_START})`;
}

function whatHappens({ act }: Selection, running: boolean, restartNow: boolean): string {
  const change = act === 'mark' ? [] : [act === 'set' ? 'set the type' : 'clear the type'];
  const then = running ? [restartNow ? 'restart' : 'mark: restart required'] : [];
  return [...change, ...then].join(', ') || 'nothing';
}

/** The same word as before is no difference to who knows only the word; the guest will see another type behind it. */
function withAlias(seen: readonly Difference[], { act, from }: Selection, to: string): readonly Difference[] {
  if (act !== 'mark' || seen.some(({ what }) => what === 'machine type')) return seen;
  return [{ what: 'machine type', from, to, why: 'the machine type is looked up anew at every start' }, ...seen];
}

export function previewText(rows: readonly PreviewRow[], glob: string): string {
  if (rows.length === 0) return `No VM is to be changed: none has a machine type that matches ${JSON.stringify(glob)}.`;
  const table = alignedTable([
    ['NAMESPACE', 'NAME', 'NOW', 'THEN', 'RUNNING', 'WHAT HAPPENS', 'GUEST SEES'],
    ...rows.map(({ namespace, name, from, to, running, what, obstacle: why, differences }) => [
      namespace,
      name,
      from,
      to,
      running ? 'yes' : 'no',
      why === undefined ? what : `${what} (${why})`,
      differences.map((one) => one.what).join(', ') || 'no difference',
    ]),
  ]);
  const more = rows.filter(({ differences }) => differences.some(({ what }) => what !== 'machine type'));
  const running = rows.filter((row) => row.running).length;
  const total = `${rows.length} VM${rows.length === 1 ? '' : 's'}, ${running} of them running. Nothing was changed.`;
  return [table, ...more.map(detailText), total].join('\n\n');
}

function detailText({ namespace, name, differences }: PreviewRow): string {
  return [
    `What the guest of ${namespace}/${name} will see differently at its next start:`,
    ...differences.map(({ what, from, to, why }) => `  ${what}\n    - ${from}\n    + ${to}\n    # ${why}`),
  ].join('\n');
}
