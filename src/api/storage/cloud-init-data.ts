/** Resolves the data of cloudInitNoCloud volumes, which is in the volume itself or in Secrets. Pure. */
import type { Secret } from '#kube/core-kinds.ts';

/** The accepted spellings of keys in a Secret; the first is written. */
export const USER_DATA_KEYS = ['userdata', 'userData'] as const;
export const NETWORK_DATA_KEYS = ['networkdata', 'networkData'] as const;

/** Returns the data in the volume itself. An empty text counts as absent. */
export function inlineCloudInitData(text: string | undefined, base64: string | undefined): Buffer | undefined {
  if (text !== undefined && text !== '') return Buffer.from(text);
  return base64 === undefined || base64 === '' ? undefined : Buffer.from(base64, 'base64');
}

/** Returns the value of the first of these keys that the Secret has. */
export function readSecretKey(secret: Secret | undefined, keys: readonly string[]): Buffer | undefined {
  for (const key of keys) {
    const value = secret?.data !== undefined && Object.hasOwn(secret.data, key) ? secret.data[key] : undefined;
    if (value !== undefined) return Buffer.from(value, 'base64');
  }
  return undefined;
}
