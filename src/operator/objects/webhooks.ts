/** Who is asked about our kinds before they are stored: admission/, served by the service selfsame-webhook. */
import { KUBEVIRT_GROUP, SYSTEM_NAMESPACE } from '#api/names.ts';
import { desired, type Desired } from '#operator/desired.ts';
import { MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS } from '#operator/kinds.ts';

export const WEBHOOK_SERVICE = 'selfsame-webhook';
const TIMEOUT_SECONDS = 10;

function webhook(verb: 'mutate' | 'validate', plural: string, operations: readonly string[]) {
  return {
    name: `${verb}-${plural}.selfsame.io`,
    clientConfig: { service: { namespace: SYSTEM_NAMESPACE, name: WEBHOOK_SERVICE, path: `/${verb}-${plural}` } },
    rules: [{ operations, apiGroups: [KUBEVIRT_GROUP], apiVersions: ['v1'], resources: [plural], scope: '*' }],
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

export const webhookObjects: readonly Desired[] = [
  desired(
    MUTATING_WEBHOOKS,
    { name: 'selfsame' },
    {
      webhooks: [
        webhook('mutate', 'virtualmachines', ['CREATE']),
        webhook('mutate', 'virtualmachineinstances', ['CREATE']),
      ],
    },
  ),
  desired(
    VALIDATING_WEBHOOKS,
    { name: 'selfsame' },
    {
      webhooks: ['virtualmachines', 'virtualmachineinstances', 'kubevirts'].map((plural) =>
        webhook('validate', plural, ['CREATE', 'UPDATE']),
      ),
    },
  ),
];
