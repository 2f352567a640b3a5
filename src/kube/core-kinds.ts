/**
 * Kubernetes' own kinds with the fields that our clients read or write. The engine has complete schemas of these kinds;
 * an existing cluster serves its own.
 */
import type { Condition } from '#kube/conditions.ts';
import type { KubeObject, ResourceType } from '#kube/meta.ts';
import type { IntOrString } from '#kube/schema-dsl.ts';

export type Quantities = Record<string, IntOrString>;

export interface PodVolume {
  name: string;
  persistentVolumeClaim?: { claimName: string; readOnly?: boolean };
  [source: string]: unknown;
}

export interface PodContainer {
  name: string;
  image: string;
  command?: string[];
  args?: string[];
  env?: { name: string; value?: string }[];
  resources?: { requests?: Quantities; limits?: Quantities };
  volumeMounts?: { name: string; mountPath: string; readOnly?: boolean }[];
  volumeDevices?: { name: string; devicePath: string }[];
  [field: string]: unknown;
}

export interface ContainerState {
  waiting?: { reason?: string; message?: string };
  running?: { startedAt?: string };
  terminated?: { exitCode: number; reason?: string; message?: string; startedAt?: string; finishedAt?: string };
}

export interface ContainerStatus {
  name: string;
  image: string;
  imageID: string;
  ready: boolean;
  started?: boolean;
  restartCount: number;
  state?: ContainerState;
  lastState?: ContainerState;
  containerID?: string;
}

export type PodPhase = 'Pending' | 'Running' | 'Succeeded' | 'Failed' | 'Unknown';

export interface PodSpec {
  nodeName?: string;
  containers: PodContainer[];
  volumes?: PodVolume[];
  restartPolicy?: 'Always' | 'OnFailure' | 'Never';
  terminationGracePeriodSeconds?: number;
  nodeSelector?: Record<string, string>;
  affinity?: unknown;
  tolerations?: unknown[];
  priorityClassName?: string;
  schedulerName?: string;
  serviceAccountName?: string;
  automountServiceAccountToken?: boolean;
  enableServiceLinks?: boolean;
  hostname?: string;
  subdomain?: string;
  [field: string]: unknown;
}

export interface Pod extends KubeObject {
  spec: PodSpec;
  status?: {
    phase?: PodPhase;
    reason?: string;
    message?: string;
    conditions?: Condition[];
    containerStatuses?: ContainerStatus[];
    hostIP?: string;
    podIP?: string;
    podIPs?: { ip: string }[];
    qosClass?: string;
    startTime?: string;
  };
}

export interface Node extends KubeObject {
  spec?: { taints?: { key: string; value?: string; effect: string }[]; unschedulable?: boolean; providerID?: string };
  status?: {
    capacity?: Quantities;
    allocatable?: Quantities;
    conditions?: (Condition & { lastHeartbeatTime?: string })[];
    addresses?: { type: string; address: string }[];
    daemonEndpoints?: { kubeletEndpoint?: { Port: number } };
    nodeInfo?: Record<string, string>;
    [field: string]: unknown;
  };
}

export type AccessMode = 'ReadWriteOnce' | 'ReadOnlyMany' | 'ReadWriteMany' | 'ReadWriteOncePod';
export type VolumeMode = 'Filesystem' | 'Block';

export interface PersistentVolumeClaim extends KubeObject {
  spec: {
    accessModes?: AccessMode[];
    volumeMode?: VolumeMode;
    volumeName?: string;
    storageClassName?: string;
    resources?: { requests?: Quantities };
    selector?: unknown;
    dataSource?: unknown;
    dataSourceRef?: unknown;
  };
  status?: {
    phase?: 'Pending' | 'Bound' | 'Lost';
    accessModes?: AccessMode[];
    capacity?: Quantities;
    conditions?: Condition[];
    allocatedResources?: Quantities;
    allocatedResourceStatuses?: Record<string, string>;
  };
}

export interface PersistentVolume extends KubeObject {
  spec: {
    capacity: Quantities;
    accessModes: AccessMode[];
    volumeMode?: VolumeMode;
    storageClassName?: string;
    persistentVolumeReclaimPolicy?: 'Retain' | 'Delete' | 'Recycle';
    claimRef?: {
      kind?: string;
      apiVersion?: string;
      namespace?: string;
      name?: string;
      uid?: string;
      resourceVersion?: string;
    };
    csi?: { driver: string; volumeHandle: string; readOnly?: boolean; volumeAttributes?: Record<string, string> };
    hostPath?: { path: string; type?: string };
    local?: { path: string; fsType?: string };
    nfs?: { server: string; path: string; readOnly?: boolean };
    mountOptions?: string[];
    nodeAffinity?: unknown;
    [source: string]: unknown;
  };
  status?: { phase?: 'Pending' | 'Available' | 'Bound' | 'Released' | 'Failed'; reason?: string; message?: string };
}

export interface StorageClass extends KubeObject {
  provisioner: string;
  parameters?: Record<string, string>;
  reclaimPolicy?: 'Retain' | 'Delete';
  volumeBindingMode?: 'Immediate' | 'WaitForFirstConsumer';
  allowVolumeExpansion?: boolean;
  mountOptions?: string[];
}

export interface Secret extends KubeObject {
  type?: string;
  data?: Record<string, string>;
}

/** A ConfigMap. The values of `binaryData` are base64. */
export interface ConfigMap extends KubeObject {
  data?: Record<string, string>;
  binaryData?: Record<string, string>;
}

export interface Lease extends KubeObject {
  spec?: {
    holderIdentity?: string;
    leaseDurationSeconds?: number;
    renewTime?: string;
    acquireTime?: string;
    leaseTransitions?: number;
  };
}

/** An object with conditions in its status: definitions, API services. */
export interface ConditionedObject extends KubeObject {
  readonly status?: { readonly conditions?: readonly Condition[]; readonly [field: string]: unknown };
}

/** Clients read only their metadata. */
export const NAMESPACES: ResourceType = {
  group: '',
  version: 'v1',
  kind: 'Namespace',
  plural: 'namespaces',
  namespaced: false,
};

export const CUSTOM_RESOURCE_DEFINITIONS: ResourceType<ConditionedObject> = {
  group: 'apiextensions.k8s.io',
  version: 'v1',
  kind: 'CustomResourceDefinition',
  plural: 'customresourcedefinitions',
  namespaced: false,
};

export const PODS: ResourceType<Pod> = { group: '', version: 'v1', kind: 'Pod', plural: 'pods', namespaced: true };
export const NODES: ResourceType<Node> = { group: '', version: 'v1', kind: 'Node', plural: 'nodes', namespaced: false };

export const PERSISTENT_VOLUME_CLAIMS: ResourceType<PersistentVolumeClaim> = {
  group: '',
  version: 'v1',
  kind: 'PersistentVolumeClaim',
  plural: 'persistentvolumeclaims',
  namespaced: true,
};

export const PERSISTENT_VOLUMES: ResourceType<PersistentVolume> = {
  group: '',
  version: 'v1',
  kind: 'PersistentVolume',
  plural: 'persistentvolumes',
  namespaced: false,
};

export const STORAGE_CLASSES: ResourceType<StorageClass> = {
  group: 'storage.k8s.io',
  version: 'v1',
  kind: 'StorageClass',
  plural: 'storageclasses',
  namespaced: false,
};

export const CONFIG_MAPS: ResourceType<ConfigMap> = {
  group: '',
  version: 'v1',
  kind: 'ConfigMap',
  plural: 'configmaps',
  namespaced: true,
};

export const SECRETS: ResourceType<Secret> = {
  group: '',
  version: 'v1',
  kind: 'Secret',
  plural: 'secrets',
  namespaced: true,
};

export interface ResourceQuota extends KubeObject {
  spec?: {
    hard?: Record<string, string | number>;
    scopes?: string[];
    scopeSelector?: { matchExpressions?: { scopeName: string; operator: string; values?: string[] }[] };
  };
  status?: { hard?: Record<string, string | number>; used?: Record<string, string | number> };
}

export const RESOURCE_QUOTAS: ResourceType<ResourceQuota> = {
  group: '',
  version: 'v1',
  kind: 'ResourceQuota',
  plural: 'resourcequotas',
  namespaced: true,
};

export const LEASES: ResourceType<Lease> = {
  group: 'coordination.k8s.io',
  version: 'v1',
  kind: 'Lease',
  plural: 'leases',
  namespaced: true,
};
