/** Builders of VMs and instances for tests of a transition. */
import type { TransitionOptions } from '#api/machine-types/options.ts';
import type { JobReference } from '#api/machine-types/kinds.ts';
import type { VirtualMachine } from '#api/virtual-machine/kind.ts';
import { vmOwnerReference } from '#api/virtual-machine/owner.ts';
import type { RunStrategy, VmStatus } from '#api/virtual-machine/schema.ts';
import type { VirtualMachineInstance } from '#api/virtual-machine-instance/kind.ts';
import type { VmiPhase, VmiStatus } from '#api/virtual-machine-instance/status.ts';
import type { ObjectMeta, Stored } from '#kube/meta.ts';

const stored = { namespace: 'ns', name: 'db', resourceVersion: '1', creationTimestamp: '2026-01-01T12:00:00Z' };

export const JOB: JobReference = { namespace: 'selfsame-system', name: 'convert-machine-type-x', uid: 'job-uid' };
export const DELETED = { deletionTimestamp: '2026-01-01T12:00:00Z' };

export interface VmOverrides {
  /** null: the field is null; undefined: the field is absent. */
  readonly type?: string | null | undefined;
  readonly runStrategy?: RunStrategy;
  readonly status?: VmStatus;
  readonly metadata?: ObjectMeta;
}

export function aVm({ runStrategy = 'Always', status, metadata, ...rest }: VmOverrides = {}): Stored<VirtualMachine> {
  const type = 'type' in rest ? rest.type : 'pc-q35-rhel8.2.0';
  // The API accepts null for a type; the TypeScript type of the schema does not.
  const domain = (type === undefined ? {} : { machine: { type } }) as { machine?: { type: string } };
  return {
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachine',
    metadata: { ...stored, uid: 'vm-uid', ...metadata },
    spec: { runStrategy, template: { spec: { domain } } },
    ...(status === undefined ? {} : { status }),
  };
}

export interface VmiOverrides {
  /** The type in its spec; may be an alias. */
  readonly type?: string;
  /** The type of the guest. */
  readonly runs?: string;
  readonly phase?: VmiPhase;
  readonly status?: VmiStatus;
  readonly metadata?: ObjectMeta;
}

export function aVmi({ type = 'pc-q35-rhel8.2.0', ...rest }: VmiOverrides = {}): Stored<VirtualMachineInstance> {
  const { runs = type, phase = 'Running', status, metadata } = rest;
  return {
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachineInstance',
    metadata: { ...stored, uid: 'vmi-uid', ownerReferences: [vmOwnerReference(aVm())], ...metadata },
    spec: { domain: { machine: { type } } },
    status: { phase, machine: { type: runs }, ...status },
  };
}

export function options(overrides: Partial<TransitionOptions> = {}): TransitionOptions {
  return { glob: '*rhel8.*', restartNow: false, maxRestarts: 10, maxFailures: Infinity, ...overrides };
}
