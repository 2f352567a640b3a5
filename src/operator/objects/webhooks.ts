/**
 * Configurations of our webhooks (admission/, served by the service selfsame-webhook): for writes of our kinds, for
 * deletes of objects that protected VMs need, and for evictions of pods.
 */
import { SYSTEM_NAMESPACE } from '#api/names.ts';
import { VIRTUAL_MACHINE_INSTANCE_MIGRATIONS } from '#api/virtual-machine-instance-migration/kind.ts';
import { VIRTUAL_MACHINE_INSTANCES } from '#api/virtual-machine-instance/kind.ts';
import { VIRTUAL_MACHINE_RESTORES } from '#api/virtual-machine-restore/kind.ts';
import { VIRTUAL_MACHINE_SNAPSHOTS } from '#api/virtual-machine-snapshot/kind.ts';
import { VIRTUAL_MACHINES } from '#api/virtual-machine/kind.ts';
import {
  CUSTOM_RESOURCE_DEFINITIONS,
  NAMESPACES,
  PERSISTENT_VOLUME_CLAIMS,
  PERSISTENT_VOLUMES,
} from '#kube/core-kinds.ts';
import type { ResourceType } from '#kube/meta.ts';
import { desiredObject, type DesiredObject } from '#operator/desired.ts';
import { MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS } from '#kube/cluster-kinds.ts';

export const WEBHOOK_SERVICE = 'selfsame-webhook';
export const MUTATING_CONFIGURATION = 'selfsame';
const TIMEOUT_SECONDS = 10;
/** Timeout of webhooks for Kubernetes' own kinds, which must not be delayed. */
const SHORT_TIMEOUT_SECONDS = 5;

type Kind = Pick<ResourceType, 'group' | 'version' | 'plural'>;

function webhook(verb: 'mutate' | 'validate', kind: Kind, operations: readonly string[]) {
  return { ...hook(`${verb}-${kind.plural}`, [ruleOf(kind, operations)]), failurePolicy: 'Fail' };
}

function ruleOf({ group, version, plural }: Kind, operations: readonly string[]) {
  return { operations, apiGroups: [group], apiVersions: [version], resources: [plural], scope: '*' };
}

function hook(name: string, rules: readonly object[]) {
  return {
    name: `${name}.selfsame.io`,
    clientConfig: { service: { namespace: SYSTEM_NAMESPACE, name: WEBHOOK_SERVICE, path: `/${name}` } },
    rules,
    matchPolicy: 'Equivalent',
    // Empty, so that the operator removes exemptions.
    matchConditions: [],
    namespaceSelector: {},
    objectSelector: {},
    sideEffects: 'None',
    timeoutSeconds: TIMEOUT_SECONDS,
    admissionReviewVersions: ['v1'],
  };
}

/** The validated kinds, without the KubeVirt object, which settings-policy.ts validates even if no webhook is running yet. */
const VALIDATED: readonly Kind[] = [
  VIRTUAL_MACHINES,
  VIRTUAL_MACHINE_INSTANCES,
  VIRTUAL_MACHINE_INSTANCE_MIGRATIONS,
  VIRTUAL_MACHINE_SNAPSHOTS,
  VIRTUAL_MACHINE_RESTORES,
];

const GUARDED: readonly Kind[] = [
  NAMESPACES,
  PERSISTENT_VOLUME_CLAIMS,
  PERSISTENT_VOLUMES,
  CUSTOM_RESOURCE_DEFINITIONS,
];

export const webhookObjects: readonly DesiredObject[] = [
  desiredObject(
    MUTATING_WEBHOOKS,
    { name: MUTATING_CONFIGURATION },
    {
      webhooks: [
        webhook('mutate', VIRTUAL_MACHINES, ['CREATE', 'UPDATE']),
        webhook('mutate', VIRTUAL_MACHINE_INSTANCES, ['CREATE']),
        webhook('mutate', VIRTUAL_MACHINE_INSTANCE_MIGRATIONS, ['CREATE']),
      ],
    },
  ),
  desiredObject(
    VALIDATING_WEBHOOKS,
    { name: 'selfsame' },
    {
      webhooks: VALIDATED.map((kind) => webhook('validate', kind, ['CREATE', 'UPDATE'])),
    },
  ),
  // Separate, with failurePolicy Ignore: the policies cover for it, and deletes of other objects must not depend on us.
  desiredObject(
    VALIDATING_WEBHOOKS,
    { name: 'selfsame-protected-deletes' },
    {
      webhooks: [
        {
          ...hook(
            'validate-protected-deletes',
            [...GUARDED, VIRTUAL_MACHINES].map((kind) => ruleOf(kind, ['DELETE'])),
          ),
          failurePolicy: 'Ignore',
          timeoutSeconds: SHORT_TIMEOUT_SECONDS,
        },
      ],
    },
  ),
  // For all pods, because a rule cannot select launcher pods.
  desiredObject(
    VALIDATING_WEBHOOKS,
    { name: 'selfsame-pod-evictions' },
    {
      webhooks: [
        {
          ...hook('validate-pod-evictions', [
            {
              ...ruleOf({ group: '', version: 'v1', plural: 'pods/eviction' }, ['CREATE']),
              scope: 'Namespaced',
            },
          ]),
          failurePolicy: 'Ignore',
          // The webhook marks the instance.
          sideEffects: 'NoneOnDryRun',
          timeoutSeconds: SHORT_TIMEOUT_SECONDS,
        },
      ],
    },
  ),
];
