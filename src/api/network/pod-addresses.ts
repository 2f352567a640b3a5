/**
 * The addresses of a launcher pod, in its annotation: a JSON object with a list of addresses for each interface of the
 * guest, with the prefix length of their subnets: {"default":["10.244.0.5/16","fd00:10:244::5/64"]}. Written by
 * controllers/vmi and controllers/migration when they create the pod; read by the node agent.
 */
import { POD_ADDRESSES_ANNOTATION } from '#api/names.ts';
import { isRecord, type KubeObject } from '#kube/meta.ts';

/** Addresses by the name of the interface. */
export type PodAddresses = Readonly<Record<string, readonly string[]>>;

/** Reports whether the guest of the pod is on the default network. */
export function hasPodAddresses({ metadata }: Pick<KubeObject, 'metadata'>): boolean {
  return metadata.annotations?.[POD_ADDRESSES_ANNOTATION] !== undefined;
}

/** Returns no addresses if the pod has none, or if the annotation is not valid: only our controllers write it. */
export function podAddressesOf({ metadata }: Pick<KubeObject, 'metadata'>): PodAddresses {
  const text = metadata.annotations?.[POD_ADDRESSES_ANNOTATION];
  if (text === undefined) return {};
  try {
    const value: unknown = JSON.parse(text);
    return isRecord(value) && Object.values(value).every(isTextList) ? (value as PodAddresses) : {};
  } catch {
    return {};
  }
}

export function formatPodAddresses(addresses: PodAddresses): string {
  return JSON.stringify(addresses);
}

function isTextList(value: unknown): boolean {
  return Array.isArray(value) && value.every((entry) => typeof entry === 'string');
}
