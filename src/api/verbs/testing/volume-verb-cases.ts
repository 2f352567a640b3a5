/** Builders of VMs and instances with volumes, and a test driver for addvolume and removevolume. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { decideVerb } from '#api/verbs/decide-verb.ts';
import type { VmiVolume } from '#api/domain/volume.ts';
import { EPHEMERAL_HOTPLUG_ANNOTATION } from '#api/names.ts';
import { aVm, aVmi } from '#api/validation/testing/valid-objects.ts';
import type { VirtualMachineInstance } from '#api/virtual-machine-instance/kind.ts';
import type { VmiSpec } from '#api/virtual-machine-instance/spec.ts';
import type { VmiPhase } from '#api/virtual-machine-instance/status.ts';
import type { VirtualMachine } from '#api/virtual-machine/kind.ts';
import type { VmStatus } from '#api/virtual-machine/schema.ts';
import { applyJsonPatch } from '#kube/patches/json-patch.ts';
import type { Stored } from '#kube/meta.ts';
import type { AddedVolume, VerbWorld, VerbTarget, SubresourceVerb, VerbOptions } from '#api/verbs/verb.ts';

const claim = (claimName: string) => ({ claimName, hotpluggable: true });
export const addOptions = (name: string, claimName = name): VerbOptions => {
  const added: AddedVolume = {
    volume: { name, persistentVolumeClaim: claim(claimName) },
    disk: { name, disk: { bus: 'scsi' } },
  };
  return { added };
};

const metadata = { name: 'db', namespace: 'golden', resourceVersion: '1', creationTimestamp: '2026-01-01T00:00:00Z' };
const OWNER = { apiVersion: 'kubevirt.io/v1', kind: 'VirtualMachine', name: 'db', uid: 'vm-uid', controller: true };

/** Returns a spec with these volumes in addition to `root` and `seed`. */
export function specOf(patch: unknown, extra: readonly VmiVolume[]): VmiSpec {
  const { spec } = aVmi({ spec: patch });
  const { disks = [] } = spec.domain.devices ?? {};
  if (extra.length === 0) return spec;
  const more = extra.map(({ name }) => ({ name, disk: { bus: 'scsi' as const } }));
  const devices = { ...spec.domain.devices, disks: [...disks, ...more] };
  return { ...spec, volumes: [...(spec.volumes ?? []), ...extra], domain: { ...spec.domain, devices } };
}

export function storedVm(spec: VmiSpec, status?: VmStatus): Stored<VirtualMachine> {
  return {
    ...aVm({ spec: { template: { spec: null } } }),
    metadata: { ...metadata, uid: 'vm-uid' },
    spec: { runStrategy: 'Always', template: { spec } },
    ...(status === undefined ? {} : { status }),
  };
}

interface Instance {
  readonly spec: VmiSpec;
  readonly phase: VmiPhase;
  readonly annotations?: Record<string, string> | undefined;
  readonly owned: boolean;
}

export function storedVmi({ spec, phase, annotations, owned }: Instance): Stored<VirtualMachineInstance> {
  return {
    ...aVmi(),
    metadata: {
      ...metadata,
      uid: 'vmi-uid',
      ...(owned ? { ownerReferences: [OWNER] } : {}),
      ...(annotations === undefined ? {} : { annotations }),
    },
    spec,
    status: { phase, nodeName: 'node-1' },
  };
}

export const ephemeral = (...names: string[]) => ({ [EPHEMERAL_HOTPLUG_ANNOTATION]: JSON.stringify(names) });
export const hot = (name: string, claimName = name): VmiVolume => ({ name, persistentVolumeClaim: claim(claimName) });

export interface Case {
  readonly verb: 'addvolume' | 'removevolume';
  readonly on: VerbTarget;
  readonly options: VerbOptions;
  /** Volumes of the VM, or of the instance, in addition to `root` and `seed`. */
  readonly vm?: readonly VmiVolume[] | 'none';
  readonly vmi?: readonly VmiVolume[] | 'none';
  /** A merge patch of the spec of the instance, or of the template. */
  readonly spec?: object;
  readonly status?: VmStatus;
  readonly phase?: VmiPhase;
  readonly annotations?: Record<string, string>;
  readonly owned?: boolean;
  /** `code message`, or the volumes and disks afterwards, and the annotation. */
  readonly want: string;
}

export const VM = { on: 'virtualmachine' } as const;
export const VMI = { on: 'virtualmachineinstance' } as const;
export const ADD = { verb: 'addvolume' } as const;
export const REMOVE = { verb: 'removevolume' } as const;
export const SNAPSHOT = { snapshotInProgress: 's1' };
export const RESTORE = { restoreInProgress: 'r1' };
export const BY_SNAPSHOT = '409 Cannot update vm disks or volumes until snapshot "s1" completes';
export const BY_RESTORE = '409 Cannot update VM template until restore "r1" completes';

export function worldOf({
  options,
  vm = [],
  vmi = [],
  spec = {},
  status,
  phase = 'Running',
  annotations,
  owned = true,
}: Case): VerbWorld {
  return {
    name: 'db',
    options,
    ...(vm === 'none' ? {} : { vm: storedVm(specOf(spec, vm), status) }),
    ...(vmi === 'none' ? {} : { vmi: storedVmi({ spec: specOf(spec, vmi), phase, annotations, owned }) }),
  };
}

const namesOf = (list: readonly { readonly name: string }[] | undefined) => (list ?? []).map(({ name }) => name).join();
const renderLists = ({ volumes, domain }: VmiSpec) => `${namesOf(volumes)} ${namesOf(domain.devices?.disks)}`;

function renderDecision(verb: SubresourceVerb, world: VerbWorld, on: VerbTarget): string {
  const answer = decideVerb(verb, world, on);
  if ('denied' in answer) {
    assert.equal(answer.denied.on, on);
    return `${answer.denied.code} ${answer.denied.message}`;
  }
  const [step, ...others] = answer.allowed;
  assert.equal(others.length, 0);
  if (step?.do === 'patchVm') {
    const { spec } = applyJsonPatch(world.vm, step.patch) as VirtualMachine;
    return `${answer.code} ${renderLists(spec.template.spec ?? assert.fail())}`;
  }
  assert.ok(step?.do === 'patchVmi');
  const vmi = applyJsonPatch(world.vmi, step.patch) as VirtualMachineInstance;
  const annotation = vmi.metadata.annotations?.[EPHEMERAL_HOTPLUG_ANNOTATION];
  return `${answer.code} ${renderLists(vmi.spec)}${annotation === undefined ? '' : ` ${annotation}`}`;
}

export function testVolumeVerbs(cases: Readonly<Record<string, Case>>): void {
  for (const [name, one] of Object.entries(cases)) {
    test(`${one.verb}: ${name}`, () => assert.equal(renderDecision(one.verb, worldOf(one), one.on), one.want));
  }
}
