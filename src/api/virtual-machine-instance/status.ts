import { conditionSchema } from '#api/custom-kinds/condition.ts';
import { migrationProgressSchema, migrationStateSchema } from '#api/migration/migration-state.ts';
import { bool, int32, int64, list, map, obj, oneOf, quantity, str, time, type Infer } from '#kube/schema-dsl.ts';

const VMI_PHASES = ['Pending', 'Scheduling', 'Scheduled', 'Running', 'Succeeded', 'Failed', 'Unknown'] as const;
export type VmiPhase = (typeof VMI_PHASES)[number];

/** Reports whether the guest of the instance has ended; such a phase never changes. */
export function isFinalVmiPhase(phase: string | undefined): boolean {
  return phase === 'Succeeded' || phase === 'Failed';
}

/**
 * Plugging: being prepared or offered to the guest. Unplugging: the guest has not released it yet. Failed: is retried.
 */
const HOTPLUG_PHASES = ['Plugging', 'Ready', 'Unplugging', 'Failed'] as const;
export type HotplugPhase = (typeof HOTPLUG_PHASES)[number];

/** Written by controllers/vmi, except AGENT_FIELDS and AgentCondition, which the node agent writes. */
export const vmiStatus = obj({
  phase: oneOf(VMI_PHASES),
  reason: str(),
  message: str({ description: 'A human-readable reason for the failure.' }),
  nodeName: str(),
  phaseTransitionTimestamps: list(obj({ phase: str(), phaseTransitionTimestamp: time() })),
  conditions: list(conditionSchema),
  activePods: map(str(), { description: 'Node names by uid of the launcher pod.' }),
  qosClass: str(),
  launcherContainerImageVersion: str(),
  runtimeUser: int64(),
  volumeStatus: list(
    obj(
      {
        name: str(),
        target: str(),
        size: int64(),
        phase: str(),
        reason: str(),
        message: str(),
        hotplugVolume: obj({}, { description: 'Set if the volume was hotplugged.' }),
        persistentVolumeClaimInfo: obj({
          claimName: str(),
          accessModes: list(str()),
          volumeMode: str(),
          capacity: map(quantity()),
          requests: map(quantity()),
        }),
      },
      { required: ['name'] },
    ),
  ),
  machine: obj({ type: str() }),
  interfaces: list(
    obj({
      name: str(),
      mac: str(),
      ipAddress: str(),
      ipAddresses: list(str()),
      interfaceName: str(),
      podInterfaceName: str(),
      infoSource: str(),
      linkState: str(),
    }),
  ),
  currentCPUTopology: obj({ cores: int32(), sockets: int32(), threads: int32() }),
  memory: obj({ guestAtBoot: quantity(), guestCurrent: quantity(), guestRequested: quantity() }),
  deviceHash: str({
    description:
      'A hash of all devices of the guest and their addresses, as read from the hypervisor. Absent before the first reading.',
  }),
  deviceRevision: int64({ description: 'Increases with each reading of the devices. Older readings are ignored.' }),
  hotplug: list(
    obj(
      {
        device: str({ description: 'disk-<name> or nic-<name>.' }),
        phase: oneOf(HOTPLUG_PHASES),
        message: str(),
        since: time(),
      },
      { required: ['device', 'phase'] },
    ),
    { description: 'Devices that are being plugged or unplugged while the guest runs, and hotplugged devices.' },
  ),
  guestOSInfo: obj(
    {
      id: str(),
      name: str(),
      prettyName: str(),
      version: str(),
      versionId: str(),
      kernelRelease: str(),
      kernelVersion: str(),
      machine: str(),
    },
    { description: 'Operating system of the guest, from the guest agent.' },
  ),
  fsFreezeStatus: str({ description: 'frozen while the file systems of the guest are frozen.' }),
  migrationState: migrationStateSchema,
  migrationProgress: migrationProgressSchema,
  evacuationNodeName: str({ description: 'The node that the instance must leave because it is being drained.' }),
  guestStarted: obj(
    { at: time(), simulated: bool() },
    { description: 'The time at which the hypervisor started the guest; simulated if there is no real guest.' },
  ),
});

export type VmiStatus = Infer<typeof vmiStatus>;

/** Fields that only the node agent writes. */
export const AGENT_FIELDS = [
  'machine',
  'interfaces',
  'currentCPUTopology',
  'memory',
  'deviceHash',
  'deviceRevision',
  'hotplug',
  'guestStarted',
  'runtimeUser',
  'migrationProgress',
  'guestOSInfo',
  'fsFreezeStatus',
] as const satisfies readonly (keyof VmiStatus)[];
/** Conditions that only the node agent writes. */
export type AgentCondition =
  | 'Paused'
  | 'AgentConnected'
  | 'SoftwareEmulation'
  | 'UserModeNetwork'
  | 'DeviceChangePending';
