/**
 * The same rule four times: objects with a protection label are not guarded, guarded by a policy, by a webhook in the
 * engine's process, and by one in another process. Each guards its own kind, so that all are active all the time.
 */
import { GROUP, type ParcelKind } from './parcel.ts';

const LABEL = 'bench.selfsame.io/delete-protection';
/** The longest path to an approval: the label exists, and its value must be checked. */
const UNPROTECTED = { [LABEL]: 'false' };
export const PROTECTED = { [LABEL]: 'true' };

export type Guard = 'none' | 'policy' | 'local webhook' | 'HTTPS webhook';

export const GUARDED_KINDS: Readonly<Record<Guard, ParcelKind>> = {
  none: { kind: 'OpenParcel', plural: 'openparcels', labels: UNPROTECTED },
  policy: { kind: 'RuledParcel', plural: 'ruledparcels', labels: UNPROTECTED },
  'local webhook': { kind: 'NearParcel', plural: 'nearparcels', labels: UNPROTECTED },
  'HTTPS webhook': { kind: 'FarParcel', plural: 'farparcels', labels: UNPROTECTED },
};

export const LOCAL_SERVICE = { namespace: 'default', name: 'bench-webhook' };

const REGISTRATION = '/apis/admissionregistration.k8s.io/v1';

function deleteRule({ plural }: ParcelKind) {
  return { apiGroups: [GROUP], apiVersions: ['*'], operations: ['DELETE'], resources: [plural] };
}

/** Modelled on the delete protection of KubeVirt's virtual machines. */
const policy = {
  apiVersion: 'admissionregistration.k8s.io/v1',
  kind: 'ValidatingAdmissionPolicy',
  metadata: { name: 'bench-delete-protection' },
  spec: {
    failurePolicy: 'Fail',
    matchConstraints: { resourceRules: [deleteRule(GUARDED_KINDS.policy)] },
    variables: [{ name: 'label', expression: `string('${LABEL}')` }],
    validations: [
      {
        expression:
          '!has(oldObject.metadata.labels) || !(variables.label in oldObject.metadata.labels) || ' +
          `!oldObject.metadata.labels[variables.label].matches('^(true|True)$')`,
        messageExpression:
          `'RuledParcel ' + string(oldObject.metadata.name) + ' cannot be deleted, remove the label ' + ` +
          `variables.label + ' from it before deleting it'`,
      },
    ],
  },
};

const binding = {
  apiVersion: 'admissionregistration.k8s.io/v1',
  kind: 'ValidatingAdmissionPolicyBinding',
  metadata: { name: 'bench-delete-protection' },
  spec: { policyName: policy.metadata.name, validationActions: ['Deny'] },
};

function webhook(name: string, kind: ParcelKind, clientConfig: object) {
  return {
    apiVersion: 'admissionregistration.k8s.io/v1',
    kind: 'ValidatingWebhookConfiguration',
    metadata: { name },
    webhooks: [
      {
        name: `${name}.${GROUP}`,
        clientConfig,
        rules: [deleteRule(kind)],
        sideEffects: 'None',
        admissionReviewVersions: ['v1'],
      },
    ],
  };
}

export interface Registration {
  readonly path: string;
  readonly object: object;
}

/** Returns all guards. The webhook of the other process listens on `port` of this machine. */
export function registrations({ port, ca }: { port: number; ca: string }): Registration[] {
  const webhooks = `${REGISTRATION}/validatingwebhookconfigurations`;
  const near = { service: { ...LOCAL_SERVICE, path: '/review' } };
  const far = { url: `https://127.0.0.1:${port}/review`, caBundle: Buffer.from(ca).toString('base64') };
  return [
    { path: `${REGISTRATION}/validatingadmissionpolicies`, object: policy },
    { path: `${REGISTRATION}/validatingadmissionpolicybindings`, object: binding },
    { path: webhooks, object: webhook('bench-near', GUARDED_KINDS['local webhook'], near) },
    { path: webhooks, object: webhook('bench-far', GUARDED_KINDS['HTTPS webhook'], far) },
  ];
}

interface Review {
  readonly request: {
    readonly uid: string;
    readonly oldObject: { readonly metadata: { readonly name: string; readonly labels?: Record<string, string> } };
  };
}

/** Reviews a delete; both webhooks use it. */
export function reviewDelete(review: unknown): object {
  const { uid, oldObject } = (review as Review).request;
  const allowed = !/^(true|True)$/.test(oldObject.metadata.labels?.[LABEL] ?? '');
  const status = { code: 403, message: `${oldObject.metadata.name} cannot be deleted, remove the label ${LABEL}` };
  return {
    apiVersion: 'admission.k8s.io/v1',
    kind: 'AdmissionReview',
    response: { uid, allowed, ...(allowed ? {} : { status }) },
  };
}
