/**
 * The certificate authorities by which the API server trusts our services over HTTPS. They are added to webhook
 * configurations and APIServices, can change at run time, and are not part of the hash of desired objects.
 */
import { isRecord } from '#kube/meta.ts';
import type { DesiredObject } from '#operator/desired.ts';

export interface Trust {
  /** Returns the PEM of all current authorities. */
  bundle(): string;
  /** Calls the listener whenever the bundle changes, until the returned function is called. */
  onChange(listener: () => void): () => void;
}

/** Returns the object with the authorities, if it is a webhook configuration or an APIService. */
export function withTrust(wanted: DesiredObject, bundle: string | undefined): DesiredObject {
  if (bundle === undefined) return wanted;
  const caBundle = Buffer.from(bundle, 'utf8').toString('base64');
  const { object } = wanted;
  if (wanted.type.kind === 'APIService' && isRecord(object['spec'])) {
    return { ...wanted, object: { ...object, spec: { ...object['spec'], caBundle } } };
  }
  const { webhooks } = object;
  if (!Array.isArray(webhooks)) return wanted;
  return { ...wanted, object: { ...object, webhooks: webhooks.map((hook: unknown) => withCaBundle(hook, caBundle)) } };
}

function withCaBundle(hook: unknown, caBundle: string): unknown {
  if (!isRecord(hook) || !isRecord(hook['clientConfig'])) return hook;
  return { ...hook, clientConfig: { ...hook['clientConfig'], caBundle } };
}
