/** Names that virtctl, the Job that changes machine types, and the operator share. */

/** The service account of the Job, in SYSTEM_NAMESPACE. */
export const TRANSITION_ACCOUNT = 'convert-machine-type';
/** On Jobs: TRANSITION_LABEL_OF_JOBS. On their ConfigMaps: the uid of the Job. */
export const TRANSITION_LABEL = 'selfsame.io/machine-types';
export const TRANSITION_LABEL_OF_JOBS = 'transition';
/** The command of our program that the Job runs. */
export const TRANSITION_COMMAND = 'update-machine-types';
export const TRANSITION_CONTAINER = 'machine-types';
/** The generateName of Jobs. */
export const JOB_PREFIX = 'convert-machine-type-';
/** On Nodes: the machine types that the node can run, with their aliases and deprecation, as JSON. */
export const MACHINE_TYPES_ANNOTATION = 'selfsame.io/machine-types';
