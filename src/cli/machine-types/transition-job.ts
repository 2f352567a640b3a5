/** Builds the Job that executes a transition. Pure. */
import { TRANSITION_JOBS, type TransitionJob } from '#api/machine-types/kinds.ts';
import {
  JOB_PREFIX,
  TRANSITION_ACCOUNT,
  TRANSITION_COMMAND,
  TRANSITION_CONTAINER,
  TRANSITION_LABEL,
  TRANSITION_LABEL_OF_JOBS,
} from '#api/machine-types/names.ts';
import { ENV_OF_OPTIONS, optionsToEnv, type EnvVariable, type TransitionOptions } from '#api/machine-types/options.ts';
import { NODE_TOLERATION, PROGRAM_IMAGE, SCHEDULABLE_LABEL, SYSTEM_NAMESPACE } from '#api/names.ts';
import { apiVersionOf } from '#kube/meta.ts';
import { VERSION } from '#lib/version.ts';

/** High, because each start continues where the last one stopped. Only a Job that makes no progress is to fail. */
const BACKOFF_LIMIT = 100;

/**
 * The time for which a finished Job, its plan and its progress are kept: 90 days. Without a limit, they would grow with each
 * command; the identity history of each VM has its own record of the change.
 */
const KEPT_SECONDS = 90 * 24 * 3600;

export function buildTransitionJob(options: TransitionOptions): TransitionJob {
  const labels = { [TRANSITION_LABEL]: TRANSITION_LABEL_OF_JOBS };
  return {
    apiVersion: apiVersionOf(TRANSITION_JOBS),
    kind: TRANSITION_JOBS.kind,
    metadata: { generateName: JOB_PREFIX, namespace: SYSTEM_NAMESPACE, labels },
    spec: {
      backoffLimit: BACKOFF_LIMIT,
      ttlSecondsAfterFinished: KEPT_SECONDS,
      // Never two pods at a time: each would restart the maximum number of VMs.
      podReplacementPolicy: 'Failed',
      template: {
        metadata: { labels },
        spec: {
          restartPolicy: 'OnFailure',
          serviceAccountName: TRANSITION_ACCOUNT,
          // Selfsame's node agents run the program without an image; other nodes would need one.
          nodeSelector: { [SCHEDULABLE_LABEL]: 'true' },
          tolerations: [NODE_TOLERATION],
          containers: [
            {
              name: TRANSITION_CONTAINER,
              // The name that `npm run image` uses. Without the version, a cluster would always pull the latest image.
              image: `${PROGRAM_IMAGE}:${VERSION}`,
              args: [TRANSITION_COMMAND],
              env: optionsToEnv(options),
              resources: RESOURCES,
            },
          ],
        },
      },
    },
  };
}

/** Limits are set as well, because a quota of the namespace can demand them. */
const RESOURCES = { requests: { cpu: '100m', memory: '256Mi' }, limits: { cpu: '1', memory: '512Mi' } };

/** Returns the namespace that the Job of a transition is restricted to; undefined if it covers all namespaces. */
export function transitionNamespace({ spec }: TransitionJob): string | undefined {
  const { containers = [] } = (spec?.template?.spec ?? {}) as { containers?: { env?: EnvVariable[] }[] };
  const env = containers.flatMap((container) => container.env ?? []);
  return env.find(({ name }) => name === ENV_OF_OPTIONS.namespace)?.value;
}

/** Renders the message after the creation, with the commands to follow the Job. */
export function createdText(job: string): string {
  return [
    `Successfully created job ${job}.`,
    'This job can be monitored using the following commands:',
    `  virtctl update machine-types list ${job}`,
    `  kubectl describe job ${job} -n ${SYSTEM_NAMESPACE}`,
    `  kubectl logs job/${job} -n ${SYSTEM_NAMESPACE} --follow`,
    'To stop and delete it:',
    `  virtctl update machine-types delete ${job}`,
  ].join('\n');
}
