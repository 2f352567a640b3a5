/** Builders for tests of decisions about VMs: valid values that take overrides. */
import { configurationOf } from '#api/kubevirt/configuration.ts';
import { RECORD_FINALIZER, STARTED_ANNOTATION, VM_FINALIZER } from '#api/names.ts';
import type { VirtualMachine } from '#api/virtual-machine/kind.ts';
import { vmOwnerReference } from '#api/virtual-machine/owner.ts';
import type { RunStrategy, VmStatus } from '#api/virtual-machine/schema.ts';
import type { VirtualMachineIdentity } from '#api/virtual-machine-identity/kind.ts';
import { startedMark } from '#api/virtual-machine-identity/restored-vm.ts';
import type { VirtualMachineInstance } from '#api/virtual-machine-instance/kind.ts';
import type { VmiSpec } from '#api/virtual-machine-instance/spec.ts';
import type { VmiPhase, VmiStatus } from '#api/virtual-machine-instance/status.ts';
import { buildVmi } from '#controllers/vm/start/build-vmi.ts';
import { resolveIdentity } from '#controllers/vm/identity/identity.ts';
import type { VmWorld } from '#controllers/vm/vm-world.ts';
import type { ObjectMeta, Stored } from '#kube/meta.ts';

export const NOW = '2026-01-01T12:00:00Z';
export const NOW_MS = Date.parse(NOW);
export const CONFIGURATION = configurationOf(undefined);

const stored = { namespace: 'ns', resourceVersion: '1', creationTimestamp: '2026-01-01T11:00:00Z' };

export interface VmOverrides {
  readonly runStrategy?: RunStrategy;
  readonly spec?: Partial<VirtualMachine['spec']>;
  readonly template?: Partial<VmiSpec>;
  readonly status?: VmStatus;
  readonly metadata?: ObjectMeta;
}

/** Returns a VM that is ready to start: it has our finalizer, the mark of a started VM and a machine type. */
export function aVm({
  runStrategy = 'Always',
  spec,
  template,
  status,
  metadata,
}: VmOverrides = {}): Stored<VirtualMachine> {
  const own = { ...stored, name: 'db', uid: 'vm-uid', generation: 1, finalizers: [VM_FINALIZER], ...metadata };
  const annotations = { [STARTED_ANNOTATION]: startedMark(own), ...metadata?.annotations };
  return {
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachine',
    metadata: { ...own, annotations },
    spec: {
      runStrategy,
      template: {
        spec: { domain: { machine: { type: 'pc-q35-7.2' }, firmware: { uuid: UUID, serial: 's1' } }, ...template },
      },
      ...spec,
    },
    ...(status === undefined ? {} : { status }),
  };
}

export const UUID = '0c53b12d-8ce6-44d9-9e1b-6b1a0a3b2a10';

/** Returns the instance that controllers/vm builds for the VM. */
export function aVmi(
  phase: VmiPhase | undefined,
  { vm = aVm(), metadata, status, spec }: VmiOverrides = {},
): Stored<VirtualMachineInstance> {
  const built = buildVmi(vm, resolveIdentity(vm, undefined), CONFIGURATION);
  return {
    ...built,
    metadata: { ...built.metadata, ...stored, name: 'db', uid: 'vmi-uid', ...metadata },
    spec: { ...built.spec, ...spec },
    status: { ...(phase === undefined ? {} : { phase }), ...status },
  };
}

export interface VmiOverrides {
  readonly vm?: Stored<VirtualMachine>;
  readonly metadata?: ObjectMeta;
  readonly status?: VmiStatus;
  readonly spec?: Partial<VmiSpec>;
}

export function aRecord(vm = aVm(), metadata: ObjectMeta = {}): Stored<VirtualMachineIdentity> {
  const held = { finalizers: [RECORD_FINALIZER], ownerReferences: [vmOwnerReference(vm)] };
  return {
    apiVersion: 'identity.selfsame.io/v1',
    kind: 'VirtualMachineIdentity',
    metadata: { ...stored, name: 'db', uid: 'record-uid', ...held, ...metadata },
    spec: resolveIdentity(vm, undefined),
  };
}

export function aWorld(overrides: Partial<VmWorld> = {}): VmWorld {
  const { vm = aVm() } = overrides;
  return { vm, identity: aRecord(vm), configuration: CONFIGURATION, claims: [], now: NOW_MS, ...overrides };
}

export const DELETED = { deletionTimestamp: NOW };
/** The status of an instance that has run. */
export const STATUS_AFTER_RUN: VmiStatus = {
  phaseTransitionTimestamps: [{ phase: 'Running', phaseTransitionTimestamp: NOW }],
};
