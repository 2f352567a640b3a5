import { conditionSchema } from '#api/custom-kinds/condition.ts';
import { vmiSpec } from '#api/virtual-machine-instance/spec.ts';
import { bool, int32, int64, list, map, obj, oneOf, str, time, type Infer } from '#kube/schema-dsl.ts';

export const RUN_STRATEGIES = ['Always', 'Halted', 'Manual', 'RerunOnFailure', 'Once'] as const;
export type RunStrategy = (typeof RUN_STRATEGIES)[number];

export const vmSpec = obj(
  {
    running: bool({ description: 'Deprecated: use runStrategy. true means Always, false means Halted.' }),
    // Not an enum: admission refuses unknown values with KubeVirt's message.
    runStrategy: str({ description: `One of ${RUN_STRATEGIES.join(', ')}.` }),
    template: obj(
      {
        metadata: obj({ labels: map(str()), annotations: map(str()), name: str(), namespace: str() }),
        spec: vmiSpec,
      },
      { description: 'The template of the instance that is created when the machine starts.' },
    ),
  },
  { required: ['template'], description: 'The run strategy of the machine, and the template of its instance.' },
);

/** In order of precedence: the first that applies is shown. */
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

/** Queued by the subresources start, stop and restart; the VM controller removes it when it is done. */
const stateChangeRequest = obj(
  {
    action: oneOf(['Start', 'Stop']),
    data: map(str(), { description: 'Start: paused: "true".' }),
    uid: str({ description: 'Stop: the uid of the instance.' }),
  },
  { required: ['action'] },
);

/** A disk of a protected VM. */
const protectedClaim = obj({
  name: str(),
  uid: str(),
  volumeName: str({ description: 'The volume of the template that has, or had, the claim.' }),
  detached: bool({ description: 'True if the template does not name the claim any more.' }),
});

/**
 * Written by controllers/vm, with three exceptions: subresources/ appends to stateChangeRequests and removes entries of
 * protectedClaims (releasedisk), and the transition Job sets machineTypeRestartRequired with its instance, which
 * controllers/vm clears.
 */
export const vmStatus = obj({
  created: bool({ description: 'True if an instance exists.' }),
  ready: bool({ description: 'True if the instance is ready.' }),
  printableStatus: oneOf(PRINTABLE_STATUSES),
  conditions: list(conditionSchema),
  stateChangeRequests: list(stateChangeRequest),
  startFailure: obj({
    consecutiveFailCount: int32(),
    lastFailedVMIUID: str(),
    retryAfterTimestamp: time(),
    reason: str({ description: 'A machine-readable reason for the last failure; message has the details.' }),
    message: str(),
  }),
  observedGeneration: int64(),
  desiredGeneration: int64(),
  runStrategy: str(),
  snapshotInProgress: str({
    description: 'The VirtualMachineSnapshot in progress. The running state and the disks cannot be changed meanwhile.',
  }),
  restoreInProgress: str({
    description: 'The VirtualMachineRestore in progress. The machine does not start meanwhile.',
  }),
  identityRecordUID: str({
    description:
      'The uid of the identity record that last had the devices. It is kept if the record is lost, so that the loss is detected.',
  }),
  stateClaim: obj(
    { name: str(), uid: str() },
    {
      description:
        'The PersistentVolumeClaim with the persistent state of the machine (TPM, EFI variables). Marks of other claims do not change it.',
    },
  ),
  protectedClaims: list(protectedClaim, {
    description:
      'The PersistentVolumeClaims of a machine that is protected from deletion: its disks, and disks that have been detached meanwhile. These stay protected until they are released by name, or the protection ends.',
  }),
  deleteProtected: bool({ description: 'True if its label protects it from deletion.' }),
  machineTypeRestartRequired: bool({
    description:
      'True if the guest still runs with a machine type that is no longer in the spec. Set by the job that changed the type; cleared when the instance is gone.',
  }),
  machineTypeRestartInstanceUID: str({
    description: 'The uid of the instance that machineTypeRestartRequired refers to.',
  }),
});

export type VmSpec = Infer<typeof vmSpec>;
export type VmStatus = Infer<typeof vmStatus>;
export type ProtectedClaim = Infer<typeof protectedClaim>;
export type StateChangeRequest = Infer<typeof stateChangeRequest>;
