/** Chooses the two machine types of the tour, or reports why a plane cannot run it. Pure. */
import { MACHINE_TYPE_LABEL_PREFIX, SCHEDULABLE_LABEL } from '#api/names.ts';
import type { Node } from '#kube/core-kinds.ts';

export interface TourMachines {
  readonly first: string;
  readonly other: string;
}

/** The node label with the hypervisor. */
const HYPERVISOR_LABEL = 'selfsame.io/hypervisor';
const VERSIONED = /^pc-q35-(\d+)\.(\d+)$/;
/** The number of releases between the two types, if there are enough. */
const RELEASES_APART = 3;

/** Returns the two machine types, or why the tour cannot run on these nodes. */
export function chooseMachineTypes(nodes: readonly Node[]): TourMachines | { readonly problem: string } {
  const usable = nodes.filter(
    ({ metadata, spec }) => isTrue(metadata.labels, SCHEDULABLE_LABEL) && !spec?.unschedulable,
  );
  if (usable.length < 2) {
    return {
      problem: `the tour migrates a running VM, and ${usable.length} nodes of this plane accept VMs; expected two`,
    };
  }
  if (usable.some(({ metadata }) => metadata.labels?.[HYPERVISOR_LABEL] === 'fake')) {
    return { problem: 'the guests of this plane are simulated (--hypervisor fake); expected real guests' };
  }
  const types = typesOf(usable[0]!).filter((type) => usable.every((node) => typesOf(node).includes(type)));
  const [other, ...older] = types.toSorted((a, b) => releaseOf(b) - releaseOf(a));
  const first = older[Math.min(RELEASES_APART, older.length) - 1];
  if (other === undefined || first === undefined) {
    return { problem: 'the nodes have fewer than two pc-q35-* machine types in common' };
  }
  return { first, other };
}

const isTrue = (labels: Readonly<Record<string, string>> | undefined, name: string) => labels?.[name] === 'true';

function typesOf({ metadata }: Node): string[] {
  return Object.keys(metadata.labels ?? {})
    .filter((label) => label.startsWith(MACHINE_TYPE_LABEL_PREFIX))
    .map((label) => label.slice(MACHINE_TYPE_LABEL_PREFIX.length))
    .filter((type) => VERSIONED.test(type));
}

function releaseOf(type: string): number {
  const [, major = '0', minor = '0'] = VERSIONED.exec(type) ?? [];
  return Number(major) * 1000 + Number(minor);
}
