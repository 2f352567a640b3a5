/** Who is asked about our kinds before they are stored: admission/, served by the service selfsame-webhook. */
import { KUBEVIRTS } from '#api/kubevirt/kind.ts';
import { SYSTEM_NAMESPACE } from '#api/names.ts';
import { VIRTUAL_MACHINE_INSTANCES } from '#api/virtual-machine-instance/kind.ts';
import { VIRTUAL_MACHINE_RESTORES } from '#api/virtual-machine-restore/kind.ts';
import { VIRTUAL_MACHINE_SNAPSHOTS } from '#api/virtual-machine-snapshot/kind.ts';
import { VIRTUAL_MACHINES } from '#api/virtual-machine/kind.ts';
import type { ResourceType } from '#kube/meta.ts';
import { desired, type Desired } from '#operator/desired.ts';
import { MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS } from '#operator/kinds.ts';

export const WEBHOOK_SERVICE = 'selfsame-webhook';
const TIMEOUT_SECONDS = 10;

type Kind = Pick<ResourceType, 'group' | 'version' | 'plural'>;

function webhook(verb: 'mutate' | 'validate', { group, version, plural }: Kind, operations: readonly string[]) {
  return {
    name: `${verb}-${plural}.selfsame.io`,
    clientConfig: { service: { namespace: SYSTEM_NAMESPACE, name: WEBHOOK_SERVICE, path: `/${verb}-${plural}` } },
    rules: [{ operations, apiGroups: [group], apiVersions: [version], resources: [plural], scope: '*' }],
    failurePolicy: 'Fail',
    matchPolicy: 'Equivalent',
    // Empty, and to stay so: nobody is left out.
    matchConditions: [],
    namespaceSelector: {},
    objectSelector: {},
    sideEffects: 'None',
    timeoutSeconds: TIMEOUT_SECONDS,
    admissionReviewVersions: ['v1'],
  };
}

const VALIDATED: readonly Kind[] = [
  VIRTUAL_MACHINES,
  VIRTUAL_MACHINE_INSTANCES,
  KUBEVIRTS,
  VIRTUAL_MACHINE_SNAPSHOTS,
  VIRTUAL_MACHINE_RESTORES,
];

export const webhookObjects: readonly Desired[] = [
  desired(
    MUTATING_WEBHOOKS,
    { name: 'selfsame' },
    {
      webhooks: [
        webhook('mutate', VIRTUAL_MACHINES, ['CREATE']),
        webhook('mutate', VIRTUAL_MACHINE_INSTANCES, ['CREATE']),
      ],
    },
  ),
  desired(
    VALIDATING_WEBHOOKS,
    { name: 'selfsame' },
    {
      webhooks: VALIDATED.map((kind) => webhook('validate', kind, ['CREATE', 'UPDATE'])),
    },
  ),
];
