import { condition } from '#api/condition.ts';
import { learnedDevice } from '#api/learned-device.ts';
import { bool, int32, int64, list, map, obj, oneOf, quantity, str, time, type Infer } from '#kube/schema-dsl.ts';

export const VMI_PHASES = ['Pending', 'Scheduling', 'Scheduled', 'Running', 'Succeeded', 'Failed', 'Unknown'] as const;
export type VmiPhase = (typeof VMI_PHASES)[number];

/** Written by controllers/vmi, but for what the node agent reports: AGENT_FIELDS and AGENT_CONDITIONS. */
export const vmiStatus = obj({
  phase: oneOf(VMI_PHASES),
  reason: str(),
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
  devices: list(learnedDevice, { description: 'Every device of the guest, as it is.' }),
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
  'devices',
  'guestStarted',
  'runtimeUser',
] as const satisfies readonly (keyof VmiStatus)[];
/** The conditions that only the agent of the node writes. */
export const AGENT_CONDITIONS = ['Paused', 'AgentConnected', 'SoftwareEmulation'] as const;
