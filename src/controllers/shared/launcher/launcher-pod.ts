/**
 * Builds the launcher pod of an instance, which the scheduler places and the node agent runs, and the target pod of a
 * migration. The name depends on the uid of the instance or migration, so a repeated creation gives one pod. Pure.
 */
import { createHash } from 'node:crypto';
import type { VmiVolume } from '#api/domain/volume.ts';
import {
  APP_LABEL,
  COMPUTE_CONTAINER,
  CONSOLE_CONTAINER,
  CREATED_BY_LABEL,
  DOMAIN_ANNOTATION,
  LAUNCHER_APP,
  LAUNCHER_IMAGE,
  MIGRATION_POD_FINALIZER,
  MIGRATION_UID_LABEL,
  NODE_NAME_LABEL,
  POD_ADDRESSES_ANNOTATION,
  VM_NAME_LABEL,
  NODE_TOLERATION,
} from '#api/names.ts';
import { formatPodAddresses, type PodAddresses } from '#api/network/pod-addresses.ts';
import { vmNameLabelValue } from '#api/vm-name-label.ts';
import { VIRTUAL_MACHINE_INSTANCES, type VirtualMachineInstance } from '#api/virtual-machine-instance/kind.ts';
import { DEFAULT_GRACE_SECONDS } from '#api/virtual-machine-instance/spec.ts';
import {
  dataNodesOf,
  launcherAffinity,
  launcherNodeSelector,
  machineSelector,
} from '#controllers/shared/launcher/launcher-affinity.ts';
import {
  consoleResources,
  launcherResources,
  type ResourcePolicy,
} from '#controllers/shared/launcher/launcher-resources.ts';
import {
  objectVolumes,
  podVolume,
  serviceAccountOf,
  stateVolume,
  isPinnedToNode,
  volumesInPod,
} from '#controllers/shared/launcher/launcher-volumes.ts';
import { claimNameOf, claimNamesOf } from '#api/storage/claim-names.ts';
import { podVolumes } from '#controllers/shared/launcher/needed-volumes.ts';
import type { ClaimView } from '#controllers/shared/launcher/claim-views.ts';
import type { Pod, PodContainer, PodSpec } from '#kube/core-kinds.ts';
import { apiVersionOf, type Stored } from '#kube/meta.ts';

type Vmi = Stored<VirtualMachineInstance>;

const NAME_MAX = 63;
const SUFFIX_LENGTH = 5;
/** The alphabet that Kubernetes uses for generated names. */
const ALPHABET = 'bcdfghjklmnpqrstvwxz2456789';
/** The node agent stops the guest within the grace period of the instance; the pod gets this much longer. */
const GRACE_EXTRA_SECONDS = 15;
const DISKS_PATH = '/var/run/kubevirt-private/vmi-disks';
const DEFAULT_CONTAINER_ANNOTATION = 'kubectl.kubernetes.io/default-container';

export function launcherPodName(vmi: Vmi): string {
  return buildPodName(vmi, vmi.metadata.uid);
}

/** Returns the name of the target pod of a migration. */
export function targetPodName(vmi: Vmi, migrationUid: string): string {
  return buildPodName(vmi, migrationUid);
}

function buildPodName({ metadata: { name } }: Vmi, uid: string): string {
  const prefix = `${LAUNCHER_APP}-`;
  const room = NAME_MAX - prefix.length - SUFFIX_LENGTH - 1;
  return `${prefix}${truncateName(name, room)}-${suffixOf(uid)}`;
}

/** The inputs for the target pod of a migration. */
export interface MigrationTarget {
  /** The uid of the migration. */
  readonly uid: string;
  readonly sourceNode: string;
  /** The target pod names the same claims, except for the state claim. */
  readonly sourcePod: Stored<Pod>;
  readonly addedNodeSelector?: Readonly<Record<string, string>>;
}

interface LauncherOptions {
  /** The claim of the persistent state, if there is one. */
  readonly state?: ClaimView | undefined;
  /** Set for the target pod of a migration. */
  readonly target?: MigrationTarget;
  readonly policy?: ResourcePolicy;
  /** The addresses of the guest on the default network; absent if there is no such network. */
  readonly addresses?: PodAddresses | undefined;
}

export function buildLauncherPod(
  vmi: Vmi,
  claims: ReadonlyMap<string, ClaimView>,
  { state, target, policy, addresses }: LauncherOptions = {},
): Pod {
  const { metadata } = vmi;
  // The label names the current node of the instance, which is not necessarily that of this pod.
  const { [NODE_NAME_LABEL]: _, ...labels } = metadata.labels ?? {};
  const controller = {
    apiVersion: apiVersionOf(VIRTUAL_MACHINE_INSTANCES),
    kind: VIRTUAL_MACHINE_INSTANCES.kind,
    name: metadata.name,
    uid: metadata.uid,
    controller: true,
    blockOwnerDeletion: true,
  };
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name: target === undefined ? launcherPodName(vmi) : targetPodName(vmi, target.uid),
      namespace: metadata.namespace,
      labels: {
        ...labels,
        [APP_LABEL]: LAUNCHER_APP,
        [CREATED_BY_LABEL]: metadata.uid,
        [VM_NAME_LABEL]: vmNameLabelValue(metadata.name),
        ...(target === undefined ? {} : { [MIGRATION_UID_LABEL]: target.uid }),
      },
      annotations: {
        [DOMAIN_ANNOTATION]: metadata.name,
        [DEFAULT_CONTAINER_ANNOTATION]: COMPUTE_CONTAINER,
        ...(addresses === undefined ? {} : { [POD_ADDRESSES_ANNOTATION]: formatPodAddresses(addresses) }),
      },
      ownerReferences: [controller],
      ...(target === undefined ? {} : { finalizers: [MIGRATION_POD_FINALIZER] }),
    },
    spec: podSpec(vmi, claims, { state, target, policy }),
  };
}

function podSpec(
  vmi: Vmi,
  claims: ReadonlyMap<string, ClaimView>,
  { state, target, policy }: LauncherOptions,
): PodSpec {
  const { spec } = vmi;
  const claimed = target === undefined ? podVolumes(spec, claims) : volumesInPod(target.sourcePod, spec);
  const staying = target === undefined ? claimed : claimed.filter(isPinnedToNode(spec, claims));
  const pinning = claimNamesOf({ volumes: staying }).flatMap((name) => claims.get(name) ?? []);
  const stateViews = state === undefined ? [] : [state];
  const affinity = launcherAffinity(spec.affinity, dataNodesOf([...pinning, ...stateViews]), target?.sourceNode);
  const nodeSelector = {
    ...launcherNodeSelector(vmi, target?.addedNodeSelector),
    ...(target === undefined ? {} : machineSelector(vmi)),
  };
  const volumes = [...claimed.map(podVolume), ...objectVolumes(spec), ...stateViews.map(stateVolume)];
  const serviceAccountName = serviceAccountOf(spec);
  const { subdomain, priorityClassName, schedulerName } = spec;
  // As in KubeVirt, a machine in a subdomain has a name there.
  const hostname = spec.hostname ?? (subdomain === undefined ? undefined : hostnameOf(vmi));
  const tolerations = [...(spec.tolerations ?? []), NODE_TOLERATION];
  const fields = { serviceAccountName, affinity, tolerations, hostname, subdomain, priorityClassName, schedulerName };
  return {
    ...withoutUndefined(fields),
    restartPolicy: 'Never',
    terminationGracePeriodSeconds: (spec.terminationGracePeriodSeconds ?? DEFAULT_GRACE_SECONDS) + GRACE_EXTRA_SECONDS,
    automountServiceAccountToken: false,
    enableServiceLinks: false,
    nodeSelector,
    containers: containersOf(vmi, { claimed, claims, policy }),
    ...(volumes.length === 0 ? {} : { volumes }),
  };
}

interface ContainerOptions extends Pick<LauncherOptions, 'policy'> {
  readonly claimed: readonly VmiVolume[];
  readonly claims: ReadonlyMap<string, ClaimView>;
}

function containersOf({ spec }: Vmi, { claimed, claims, policy }: ContainerOptions): PodContainer[] {
  const isBlock = (volume: VmiVolume): boolean =>
    claims.get(claimNameOf(volume) ?? '')?.claim.spec.volumeMode === 'Block';
  const devices = claimed.filter(isBlock).map(({ name }) => ({ name, devicePath: `/dev/${name}` }));
  const mounts = claimed
    .filter((volume) => !isBlock(volume))
    .map(({ name }) => ({ name, mountPath: `${DISKS_PATH}/${name}` }));
  const resources = launcherResources(spec.domain, policy);
  const ports = containerPorts(spec);
  const compute: PodContainer = {
    name: COMPUTE_CONTAINER,
    image: LAUNCHER_IMAGE,
    resources,
    ...(ports.length === 0 ? {} : { ports }),
    ...(mounts.length === 0 ? {} : { volumeMounts: mounts }),
    ...(devices.length === 0 ? {} : { volumeDevices: devices }),
  };
  const hasConsole = spec.domain.devices?.autoattachSerialConsole !== false;
  if (!hasConsole) return [compute];
  return [compute, { name: CONSOLE_CONTAINER, image: LAUNCHER_IMAGE, resources: consoleResources(resources) }];
}

interface ContainerPort {
  readonly name?: string;
  readonly containerPort: number;
  readonly protocol: string;
}

/** The names that Kubernetes accepts for ports. */
const PORT_NAME = /^(?=.*[a-z])(?=.{1,15}$)[a-z0-9]+(?:-[a-z0-9]+)*$/;

/**
 * Returns the ports that interfaces name, so that Services can refer to them by name. A name that a pod cannot have is
 * omitted.
 */
function containerPorts({ domain }: Vmi['spec']): ContainerPort[] {
  const ports = new Map<string, ContainerPort>();
  const names = new Set<string>();
  for (const { name = '', port, protocol = 'TCP' } of (domain.devices?.interfaces ?? []).flatMap(
    (one) => one.ports ?? [],
  )) {
    const key = `${protocol} ${port}`;
    if (ports.has(key)) continue;
    const isUsable = PORT_NAME.test(name) && !names.has(name);
    ports.set(key, { ...(isUsable && { name }), containerPort: port, protocol });
    names.add(name);
  }
  return [...ports.values()];
}

/** Returns the first label of the instance's name. */
function hostnameOf({ metadata: { name } }: Vmi): string {
  return truncateName(name.split('.')[0] ?? '', NAME_MAX);
}

function withoutUndefined(fields: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));
}

/** Shortens a name and removes trailing characters with which a name may not end. */
function truncateName(name: string, length: number): string {
  return name.slice(0, length).replace(/[^a-z0-9]+$/, '');
}

function suffixOf(uid: string): string {
  const digest = createHash('sha256').update(uid).digest();
  let suffix = '';
  for (let i = 0; i < SUFFIX_LENGTH; i++) suffix += ALPHABET[digest.readUInt16BE(2 * i) % ALPHABET.length];
  return suffix;
}
