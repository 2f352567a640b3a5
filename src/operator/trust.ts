/**
 * By whose certificates the API server knows our services, where it reaches them over HTTPS: the authorities, written into
 * webhook configurations and APIServices. They change while we run, and are no part of what an installation is compared by.
 */
import { isRecord } from '#kube/meta.ts';
import type { Desired } from '#operator/desired.ts';

export interface Trust {
  /** PEM of all authorities whose certificates count now. */
  bundle(): string;
  /** Called whenever `bundle` answers otherwise. The result ends it. */
  onChange(listener: () => void): () => void;
}

/** The object with the authorities in it, where it has a place for them. */
export function withTrust(wanted: Desired, bundle: string | undefined): Desired {
  if (bundle === undefined) return wanted;
  const caBundle = Buffer.from(bundle, 'utf8').toString('base64');
  const { object } = wanted;
  if (wanted.type.kind === 'APIService' && isRecord(object['spec'])) {
    return { ...wanted, object: { ...object, spec: { ...object['spec'], caBundle } } };
  }
  const { webhooks } = object;
  if (!Array.isArray(webhooks)) return wanted;
  return { ...wanted, object: { ...object, webhooks: webhooks.map((hook: unknown) => trusting(hook, caBundle)) } };
}

function trusting(hook: unknown, caBundle: string): unknown {
  if (!isRecord(hook) || !isRecord(hook['clientConfig'])) return hook;
  return { ...hook, clientConfig: { ...hook['clientConfig'], caBundle } };
}
