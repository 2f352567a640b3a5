import { condition } from '#api/condition.ts';
import { migrationProgress, migrationState } from '#api/migration-state.ts';
import { bool, int32, int64, list, map, obj, oneOf, quantity, str, time, type Infer } from '#kube/schema-dsl.ts';

export const VMI_PHASES = ['Pending', 'Scheduling', 'Scheduled', 'Running', 'Succeeded', 'Failed', 'Unknown'] as const;
export type VmiPhase = (typeof VMI_PHASES)[number];

/** Plugging: being made ready, or offered to the guest. Unplugging: the guest has not let go yet. Failed: tried again. */
export const HOTPLUG_PHASES = ['Plugging', 'Ready', 'Unplugging', 'Failed'] as const;
export type HotplugPhase = (typeof HOTPLUG_PHASES)[number];

/** Written by controllers/vmi, but for what the node agent reports: AGENT_FIELDS and AGENT_CONDITIONS. */
export const vmiStatus = obj({
  phase: oneOf(VMI_PHASES),
  reason: str(),
  message: str({ description: 'Why it failed, for people.' }),
  nodeName: str(),
  phaseTransitionTimestamps: list(obj({ phase: str(), phaseTransitionTimestamp: time() })),
  conditions: list(condition),
  activePods: map(str(), { description: 'Node names by the uid of the pod.' }),
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
        hotplugVolume: obj({}, { description: 'Plugged in while the guest ran.' }),
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
      infoSource: str(),
      linkState: str(),
    }),
  ),
  currentCPUTopology: obj({ cores: int32(), sockets: int32(), threads: int32() }),
  memory: obj({ guestAtBoot: quantity(), guestCurrent: quantity(), guestRequested: quantity() }),
  deviceHash: str({
    description:
      'Of all devices of the guest and their addresses, as read from the hypervisor; absent until that is so.',
  }),
  deviceRevision: int64({ description: 'Rises with each reading of the devices: what is older never wins.' }),
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
    { description: 'Devices that came or are going while the guest runs.' },
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
    { description: 'As the guest agent says.' },
  ),
  fsFreezeStatus: str({ description: 'frozen while the file systems of the guest are.' }),
  migrationState,
  migrationProgress,
  evacuationNodeName: str({ description: 'The node that it is to leave, because somebody empties it.' }),
  guestStarted: obj(
    { at: time(), simulated: bool() },
    { description: 'When the hypervisor started the guest; simulated where no real one runs.' },
  ),
});

export type VmiStatus = Infer<typeof vmiStatus>;

/** What only the agent of the node writes; everybody else leaves these fields as they are. */
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
/** The conditions that only the agent of the node writes. */
export const AGENT_CONDITIONS = ['Paused', 'AgentConnected', 'SoftwareEmulation', 'DeviceChangePending'] as const;
