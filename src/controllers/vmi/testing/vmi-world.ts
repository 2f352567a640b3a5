/** Builders for tests of decisions about instances: valid values that take overrides. */
import { CREATED_BY_LABEL } from '#api/names.ts';
import type { VirtualMachineInstance } from '#api/virtual-machine-instance/kind.ts';
import type { VmiSpec } from '#api/virtual-machine-instance/spec.ts';
import type { VmiStatus } from '#api/virtual-machine-instance/status.ts';
import { claimNamesOf } from '#api/storage/claim-names.ts';
import type { VmiWorld } from '#controllers/vmi/vmi-world.ts';
import { FULL_MEMORY } from '#controllers/shared/launcher/launcher-resources.ts';
import type { ClaimView } from '#controllers/shared/launcher/claim-views.ts';
import type { PersistentVolume, PersistentVolumeClaim, Pod } from '#kube/core-kinds.ts';
import type { ObjectMeta, Stored } from '#kube/meta.ts';

export const NOW = '2030-01-01T00:00:00Z';
export const UID = '7c0a4f0e-5a7b-4a37-9f0e-1d2c3b4a5f60';
export const POD_NAME = 'virt-launcher-db-gz6zt';

export interface VmiOverrides {
  readonly name?: string;
  readonly meta?: ObjectMeta;
  readonly spec?: Partial<VmiSpec>;
  readonly status?: VmiStatus;
}

export function aVmi({ name = 'db', meta = {}, spec = {}, status }: VmiOverrides = {}): Stored<VirtualMachineInstance> {
  return {
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachineInstance',
    metadata: { namespace: 'default', name, uid: UID, resourceVersion: '1', creationTimestamp: NOW, ...meta },
    spec: { domain: { memory: { guest: '128Mi' } }, ...spec },
    ...(status === undefined ? {} : { status }),
  };
}

export function aPod(
  { phase, nodeName, ...status }: NonNullable<Pod['status']> & { nodeName?: string } = {},
  meta: ObjectMeta = {},
): Stored<Pod> {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      namespace: 'default',
      name: POD_NAME,
      uid: 'pod-uid',
      resourceVersion: '1',
      creationTimestamp: NOW,
      labels: { [CREATED_BY_LABEL]: UID },
      ...meta,
    },
    spec: { containers: [{ name: 'compute', image: 'selfsame/virt-launcher' }], ...(nodeName ? { nodeName } : {}) },
    status: { phase: phase ?? 'Pending', ...status },
  };
}

export function aClaim(name: string, more: Partial<PersistentVolumeClaim> = {}): Stored<PersistentVolumeClaim> {
  return {
    apiVersion: 'v1',
    kind: 'PersistentVolumeClaim',
    spec: { accessModes: ['ReadWriteOnce'] },
    ...more,
    metadata: { namespace: 'default', name, uid: name, resourceVersion: '1', creationTimestamp: NOW, ...more.metadata },
  };
}

export function aVolume(name: string, annotations: Record<string, string> = {}): Stored<PersistentVolume> {
  return {
    apiVersion: 'v1',
    kind: 'PersistentVolume',
    metadata: { name, uid: name, resourceVersion: '1', creationTimestamp: NOW, annotations },
    spec: { capacity: { storage: '1Gi' }, accessModes: ['ReadWriteOnce'] },
  };
}

/** Returns a world in which all claims of the instance exist, unless `claims` is given. */
export function aWorld({ vmi = aVmi(), ...more }: Partial<VmiWorld> = {}): VmiWorld {
  const claims = new Map<string, ClaimView>(claimNamesOf(vmi.spec).map((name) => [name, { claim: aClaim(name) }]));
  return {
    vmi,
    claims,
    heldClaims: [],
    otherPods: [],
    isMigrationActive: false,
    isNodeReachable: true,
    policy: FULL_MEMORY,
    now: NOW,
    ...more,
  };
}
