/**
 * The same wish four times: nobody, a policy, a webhook in the engine's process and one of another process keep what a
 * label protects from being deleted. Each guards a kind of its own, so that all are in force all the time.
 */
import { GROUP, type ParcelKind } from './parcel.ts';

const LABEL = 'bench.selfsame.io/delete-protection';
/** The longest way to a yes: the label is there, and its value is to be looked at. */
const UNPROTECTED = { [LABEL]: 'false' };
export const PROTECTED = { [LABEL]: 'true' };

export type Guard = 'nobody' | 'policy' | 'local webhook' | 'HTTPS webhook';

export const GUARDED_KINDS: Readonly<Record<Guard, ParcelKind>> = {
  nobody: { kind: 'OpenParcel', plural: 'openparcels', labels: UNPROTECTED },
  policy: { kind: 'RuledParcel', plural: 'ruledparcels', labels: UNPROTECTED },
  'local webhook': { kind: 'NearParcel', plural: 'nearparcels', labels: UNPROTECTED },
  'HTTPS webhook': { kind: 'FarParcel', plural: 'farparcels', labels: UNPROTECTED },
};

export const LOCAL_SERVICE = { namespace: 'default', name: 'bench-webhook' };

const REGISTRATION = '/apis/admissionregistration.k8s.io/v1';

function deletesOf({ plural }: ParcelKind) {
  return { apiGroups: [GROUP], apiVersions: ['*'], operations: ['DELETE'], resources: [plural] };
}

/** Modelled on the delete protection of KubeVirt's virtual machines. */
const policy = {
  apiVersion: 'admissionregistration.k8s.io/v1',
  kind: 'ValidatingAdmissionPolicy',
  metadata: { name: 'bench-delete-protection' },
  spec: {
    failurePolicy: 'Fail',
    matchConstraints: { resourceRules: [deletesOf(GUARDED_KINDS.policy)] },
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
        rules: [deletesOf(kind)],
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

/** All guards; the webhook of another process listens on `port` of this machine. */
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

/** What both webhooks say. */
export function answerReview(review: unknown): object {
  const { uid, oldObject } = (review as Review).request;
  const allowed = !/^(true|True)$/.test(oldObject.metadata.labels?.[LABEL] ?? '');
  const status = { code: 403, message: `${oldObject.metadata.name} cannot be deleted, remove the label ${LABEL}` };
  return {
    apiVersion: 'admission.k8s.io/v1',
    kind: 'AdmissionReview',
    response: { uid, allowed, ...(allowed ? {} : { status }) },
  };
}
