import { condition } from '#api/condition.ts';
import { vmiSpec } from '#api/virtual-machine-instance/spec.ts';
import { bool, int32, int64, list, map, obj, oneOf, str, time, type Infer } from '#kube/schema-dsl.ts';

export const RUN_STRATEGIES = ['Always', 'Halted', 'Manual', 'RerunOnFailure', 'Once'] as const;
export type RunStrategy = (typeof RUN_STRATEGIES)[number];

export const vmSpec = obj(
  {
    running: bool({ description: 'Deprecated: true is runStrategy Always, false is Halted.' }),
    // Words that it does not know are refused by admission, in KubeVirt's words.
    runStrategy: str({ description: `One of ${RUN_STRATEGIES.join(', ')}.` }),
    template: obj(
      {
        metadata: obj({ labels: map(str()), annotations: map(str()), name: str(), namespace: str() }),
        spec: vmiSpec,
      },
      { description: 'The instance that is made when the machine starts.' },
    ),
  },
  { required: ['template'], description: 'Whether the machine is to run, and what it then is.' },
);

/** In the order in which the first that applies is shown. */
export const PRINTABLE_STATUSES = [
  'Terminating',
  'Stopping',
  'Migrating',
  'Paused',
  'Running',
  'ErrorPvcNotFound',
  'DataVolumeError',
  'ErrorUnschedulable',
  'Provisioning',
  'WaitingForVolumeBinding',
  'ErrImagePull',
  'ImagePullBackOff',
  'Starting',
  'CrashLoopBackOff',
  'Stopped',
  'WaitingForReceiver',
  'Unknown',
] as const;
export type PrintableStatus = (typeof PRINTABLE_STATUSES)[number];

/** Asked for through the subresources start, stop and restart; taken off by the VM controller once done. */
export const stateChangeRequest = obj(
  {
    action: oneOf(['Start', 'Stop']),
    data: map(str(), { description: 'Start: paused: "true".' }),
    uid: str({ description: 'Stop: of the instance that is meant.' }),
  },
  { required: ['action'] },
);

/**
 * Written by controllers/vm, but for stateChangeRequests, to which subresources/ appends, and machineTypeRestartRequired
 * with its instance, which the transition Job sets and controllers/vm clears.
 */
export const vmStatus = obj({
  created: bool({ description: 'Whether there is an instance.' }),
  ready: bool({ description: 'Whether the instance is ready.' }),
  printableStatus: oneOf(PRINTABLE_STATUSES),
  conditions: list(condition),
  stateChangeRequests: list(stateChangeRequest),
  startFailure: obj({
    consecutiveFailCount: int32(),
    lastFailedVMIUID: str(),
    retryAfterTimestamp: time(),
    reason: str({ description: 'Why the last one failed: a word for programs, and the message for people.' }),
    message: str(),
  }),
  observedGeneration: int64(),
  desiredGeneration: int64(),
  runStrategy: str(),
  snapshotInProgress: str({
    description: 'The VirtualMachineSnapshot that is being taken; run state and disks are held.',
  }),
  restoreInProgress: str({
    description: 'The VirtualMachineRestore that changes the machine; it does not start meanwhile.',
  }),
  identityRecordUID: str({
    description:
      'The uid of the identity record that last held the devices. It stays when the record is lost: that is how the loss is noticed.',
  }),
  deleteProtected: bool({ description: 'Whether its label keeps it from being deleted.' }),
  machineTypeRestartRequired: bool({
    description:
      'Whether it still runs on a machine type that is no longer in its spec. Set by the job that changed it; false again when the instance that it is about is gone.',
  }),
  machineTypeRestartInstanceUID: str({
    description: 'The uid of the instance that machineTypeRestartRequired is about.',
  }),
});

export type VmSpec = Infer<typeof vmSpec>;
export type VmStatus = Infer<typeof vmStatus>;
export type StateChangeRequest = Infer<typeof stateChangeRequest>;
