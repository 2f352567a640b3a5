/**
 * The launcher pod of an instance: what the scheduler places and the node agent runs; also one to which the guest is to
 * move. Its name is made from the uid of the instance, or of the migration, so that making it twice makes one. Pure.
 */
import { createHash } from 'node:crypto';
import type { Volume } from '#api/domain/volume.ts';
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
  VM_NAME_LABEL,
  NODE_TOLERATION,
} from '#api/names.ts';
import { VIRTUAL_MACHINE_INSTANCES, type VirtualMachineInstance } from '#api/virtual-machine-instance/kind.ts';
import { DEFAULT_GRACE_SECONDS } from '#api/virtual-machine-instance/spec.ts';
import {
  dataNodesOf,
  launcherAffinity,
  launcherNodeSelector,
  machineSelector,
} from '#controllers/vmi/launcher-affinity.ts';
import { launcherResources } from '#controllers/vmi/launcher-resources.ts';
import {
  objectVolumes,
  podVolume,
  serviceAccountOf,
  stateVolume,
  staysBehind,
  volumesAlsoIn,
} from '#controllers/vmi/launcher-volumes.ts';
import { claimNameOf, claimNamesOf } from '#api/claim-names.ts';
import { podVolumes } from '#controllers/vmi/needed-volumes.ts';
import { type ClaimView } from '#controllers/vmi/vmi-world.ts';
import type { Pod, PodContainer, PodSpec } from '#kube/core-kinds.ts';
import { apiVersionOf, type Stored } from '#kube/meta.ts';

type Vmi = Stored<VirtualMachineInstance>;

const NAME_MAX = 63;
const SUFFIX_LENGTH = 5;
/** Kubernetes' alphabet for generated names; 27 letters, so that names look like those of KubeVirt's pods. */
const ALPHABET = 'bcdfghjklmnpqrstvwxz2456789';
/** The agent stops the guest within the instance's own time; the pod as a whole gets this much more. */
const GRACE_EXTRA_SECONDS = 15;
const DISKS_PATH = '/var/run/kubevirt-private/vmi-disks';
const DEFAULT_CONTAINER_ANNOTATION = 'kubectl.kubernetes.io/default-container';

export function launcherPodName(vmi: Vmi): string {
  return podNameFrom(vmi, vmi.metadata.uid);
}

/** Of the pod to which the guest is to move. */
export function targetPodName(vmi: Vmi, migrationUid: string): string {
  return podNameFrom(vmi, migrationUid);
}

function podNameFrom({ metadata: { name } }: Vmi, uid: string): string {
  const prefix = `${LAUNCHER_APP}-`;
  const room = NAME_MAX - prefix.length - SUFFIX_LENGTH - 1;
  return `${prefix}${cut(name, room)}-${suffixOf(uid)}`;
}

/** What makes it the pod to which the guest is to move. */
export interface MigrationTarget {
  /** Of the migration. */
  readonly uid: string;
  readonly sourceNode: string;
  /** It names the claims that this one is to name, but for that of the state. */
  readonly sourcePod: Stored<Pod>;
  readonly addedNodeSelector?: Readonly<Record<string, string>>;
}

/** `state`: the claim of what outlives the guest, where there is such. */
export function buildLauncherPod(
  vmi: Vmi,
  claims: ReadonlyMap<string, ClaimView>,
  state?: ClaimView,
  target?: MigrationTarget,
): Pod {
  const { metadata } = vmi;
  // Where the instance is now says nothing of this pod.
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
        [VM_NAME_LABEL]: cut(metadata.name, NAME_MAX),
        ...(target === undefined ? {} : { [MIGRATION_UID_LABEL]: target.uid }),
      },
      annotations: { [DOMAIN_ANNOTATION]: metadata.name, [DEFAULT_CONTAINER_ANNOTATION]: COMPUTE_CONTAINER },
      ownerReferences: [controller],
      ...(target === undefined ? {} : { finalizers: [MIGRATION_POD_FINALIZER] }),
    },
    spec: podSpec(vmi, claims, { state, target }),
  };
}

function podSpec(
  vmi: Vmi,
  claims: ReadonlyMap<string, ClaimView>,
  { state, target }: { readonly state?: ClaimView; readonly target?: MigrationTarget },
): PodSpec {
  const { spec } = vmi;
  const claimed = target === undefined ? podVolumes(spec, claims) : volumesAlsoIn(target.sourcePod, spec);
  const staying = target === undefined ? claimed : claimed.filter(staysBehind(spec, claims));
  const pinning = claimNamesOf({ volumes: staying }).flatMap((name) => claims.get(name) ?? []);
  const stateViews = state === undefined ? [] : [state];
  const affinity = launcherAffinity(spec.affinity, dataNodesOf([...pinning, ...stateViews]), target?.sourceNode);
  const nodeSelector = {
    ...launcherNodeSelector(vmi, target?.addedNodeSelector),
    ...(target === undefined ? {} : machineSelector(vmi)),
  };
  const volumes = [...claimed.map(podVolume), ...objectVolumes(spec), ...stateViews.map(stateVolume)];
  const serviceAccountName = serviceAccountOf(spec);
  const { hostname, subdomain, priorityClassName, schedulerName } = spec;
  const tolerations = [...(spec.tolerations ?? []), NODE_TOLERATION];
  const asked = { serviceAccountName, affinity, tolerations, hostname, subdomain, priorityClassName, schedulerName };
  return {
    ...withoutUndefined(asked),
    restartPolicy: 'Never',
    terminationGracePeriodSeconds: (spec.terminationGracePeriodSeconds ?? DEFAULT_GRACE_SECONDS) + GRACE_EXTRA_SECONDS,
    automountServiceAccountToken: false,
    enableServiceLinks: false,
    nodeSelector,
    containers: containersOf(vmi, claimed, claims),
    ...(volumes.length === 0 ? {} : { volumes }),
  };
}

function containersOf({ spec }: Vmi, claimed: readonly Volume[], claims: ReadonlyMap<string, ClaimView>) {
  const isBlock = (volume: Volume): boolean => claims.get(claimNameOf(volume) ?? '')?.claim.spec.volumeMode === 'Block';
  const devices = claimed.filter(isBlock).map(({ name }) => ({ name, devicePath: `/dev/${name}` }));
  const mounts = claimed
    .filter((volume) => !isBlock(volume))
    .map(({ name }) => ({ name, mountPath: `${DISKS_PATH}/${name}` }));
  const compute: PodContainer = {
    name: COMPUTE_CONTAINER,
    image: LAUNCHER_IMAGE,
    resources: launcherResources(spec.domain),
    ...(mounts.length === 0 ? {} : { volumeMounts: mounts }),
    ...(devices.length === 0 ? {} : { volumeDevices: devices }),
  };
  const hasConsole = spec.domain.devices?.autoattachSerialConsole !== false;
  return hasConsole ? [compute, { name: CONSOLE_CONTAINER, image: LAUNCHER_IMAGE }] : [compute];
}

function withoutUndefined(fields: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));
}

/** What is left must not end in a character that a name may not end with. */
function cut(name: string, length: number): string {
  return name.slice(0, length).replace(/[^a-z0-9]+$/, '');
}

function suffixOf(uid: string): string {
  const digest = createHash('sha256').update(uid).digest();
  let suffix = '';
  for (let i = 0; i < SUFFIX_LENGTH; i++) suffix += ALPHABET[digest.readUInt16BE(2 * i) % ALPHABET.length];
  return suffix;
}
