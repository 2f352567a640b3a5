/** Builders of VMs and instances, and a test driver that renders the decision about a verb as short text. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { decideVerb } from '#api/verbs/decide-verb.ts';
import type { MigrationState } from '#api/migration/migration-state.ts';
import type { VirtualMachineInstance } from '#api/virtual-machine-instance/kind.ts';
import type { VmiSpec } from '#api/virtual-machine-instance/spec.ts';
import type { VmiPhase } from '#api/virtual-machine-instance/status.ts';
import type { VirtualMachine } from '#api/virtual-machine/kind.ts';
import type { VmStatus } from '#api/virtual-machine/schema.ts';
import { applyJsonPatch } from '#kube/patches/json-patch.ts';
import type { Stored } from '#kube/meta.ts';
import type { VerbWorld, VerbStep, SubresourceVerb, VerbOptions } from '#api/verbs/verb.ts';

const metadata = { name: 'db', namespace: 'ns', resourceVersion: '1', creationTimestamp: '2026-01-01T00:00:00Z' };

const VM_REFERENCE = {
  apiVersion: 'kubevirt.io/v1',
  kind: 'VirtualMachine',
  name: 'db',
  uid: 'vm-uid',
  controller: true,
};

export function aVm(spec: Partial<VirtualMachine['spec']>, status?: VmStatus): Stored<VirtualMachine> {
  return {
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachine',
    metadata: { ...metadata, uid: 'vm-uid' },
    spec: { template: { spec: { domain: {} } }, ...spec },
    ...(status === undefined ? {} : { status }),
  };
}

interface VmiOptions {
  readonly spec?: Partial<VmiSpec>;
  readonly paused?: boolean;
  readonly migration?: MigrationState;
  readonly isDeleting?: boolean;
}

export function aVmi(
  phase: VmiPhase | undefined,
  { spec, paused = false, migration, isDeleting = false }: VmiOptions = {},
): Stored<VirtualMachineInstance> {
  const conditions = paused ? [{ type: 'Paused', status: 'True' as const }] : [];
  return {
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachineInstance',
    metadata: {
      ...{ ...metadata, uid: 'vmi-uid', ownerReferences: [VM_REFERENCE] },
      ...(isDeleting && { deletionTimestamp: '2026-01-01T00:01:00Z' }),
    },
    spec: { domain: {}, ...spec },
    status: {
      ...(phase === undefined ? {} : { phase }),
      nodeName: 'node-1',
      conditions,
      ...(migration === undefined ? {} : { migrationState: migration }),
    },
  };
}

export function aForeignVmi(): Stored<VirtualMachineInstance> {
  const vmi = aVmi('Running');
  return { ...vmi, metadata: { ...vmi.metadata, ownerReferences: [{ ...VM_REFERENCE, uid: 'another' }] } };
}

/** Renders a step: `->X` the new strategy; `[..]` the queue; `grace n` of the instance; `pod`; a migration; `node`. */
function renderStep(step: VerbStep, { vm }: VerbWorld): string {
  switch (step.do) {
    case 'patchVm': {
      const { spec } = applyJsonPatch(vm, step.patch) as VirtualMachine;
      return `->${spec.runStrategy || spec.running}`;
    }
    case 'patchVmStatus': {
      const { status } = applyJsonPatch(vm, step.patch) as VirtualMachine;
      const queue = (status?.stateChangeRequests ?? []).map(
        ({ action, data, uid }) => `${action}${uid === undefined ? '' : ` ${uid}`}${data?.['paused'] ? ' paused' : ''}`,
      );
      return `[${queue.join(', ')}]${status?.startFailure === undefined ? '' : ' and a failure'}`;
    }
    case 'patchVmi':
      return `grace ${step.patch.find(({ op }) => op === 'replace')?.value as number}`;
    case 'patchClaim':
      return `claim ${step.name}`;
    case 'deletePod':
      return `pod ${step.gracePeriodSeconds}`;
    case 'createMigration':
      return `${step.generateName}* ${JSON.stringify(step.spec)}`;
    case 'callNode':
      return `${step.nodeName} ${step.verb}`;
  }
}

export function renderDecision(verb: SubresourceVerb, world: VerbWorld): string {
  const answer = decideVerb(verb, world);
  if ('denied' in answer) return `${answer.denied.code} ${answer.denied.message}`;
  return [answer.code, ...answer.allowed.map((step) => renderStep(step, world))].join(' ');
}

export interface Case {
  readonly verb: SubresourceVerb;
  readonly spec?: Partial<VirtualMachine['spec']>;
  readonly status?: VmStatus;
  readonly vmi?: Stored<VirtualMachineInstance>;
  readonly options?: VerbOptions;
  readonly want: string;
}

export function testVerbs(cases: Readonly<Record<string, Case>>): void {
  for (const [name, { verb, spec = { runStrategy: 'Always' }, status, vmi, options, want }] of Object.entries(cases)) {
    test(`${verb}: ${name}`, () => {
      assert.equal(renderDecision(verb, { name: 'db', vm: aVm(spec, status), vmi, options }), want);
    });
  }
}
