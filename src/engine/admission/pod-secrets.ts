/** Finds the Secrets that a pod references, and checks whether its service account allows them. Pure. */
import type { Container } from '#engine/registry/kinds/pod-spec/container.ts';
import type { EnginePodSpec } from '#engine/registry/kinds/pod-spec/pod-spec.ts';
import { records } from '#engine/registry/kinds/shared/reading.ts';
import { isRecord, type KubeObject } from '#kube/meta.ts';

export interface ServiceAccount extends KubeObject {
  automountServiceAccountToken?: boolean;
  imagePullSecrets?: { name?: string }[];
  secrets?: { name?: string }[];
}

const ENFORCE_MOUNTABLE = 'kubernetes.io/enforce-mountable-secrets';
/** The values that Go's ParseBool treats as true. */
const TRUE = new Set(['1', 't', 'T', 'TRUE', 'true', 'True']);

/** Reports whether a pod references any Secret. */
export function refersToSecrets(spec: EnginePodSpec): boolean {
  const containers = [
    ...records(spec.initContainers),
    ...records(spec.containers),
    ...records(spec.ephemeralContainers),
  ];
  return (
    records(spec.imagePullSecrets).some(({ name }) => name) ||
    containers.some((container) => envSecrets(container).length > 0) ||
    records(spec.volumes).some((volume) => Object.values(volume).some(sourceRefers))
  );
}

const REFERENCES = ['secretRef', 'nodePublishSecretRef', 'secretName'];

function sourceRefers(source: unknown): boolean {
  if (!isRecord(source)) return false;
  if (REFERENCES.some((field) => source[field] !== undefined)) return true;
  const sources = source['sources'];
  return Array.isArray(sources) && sources.some((one) => isRecord(one) && one['secret'] !== undefined);
}

/** Returns why the account does not allow a Secret of the pod, or undefined if it allows all or does not enforce it. */
export function findUnmountableSecret(account: ServiceAccount, spec: EnginePodSpec): string | undefined {
  const { annotations, name = '' } = account.metadata;
  if (!TRUE.has(annotations?.[ENFORCE_MOUNTABLE] ?? '')) return undefined;
  const allowed = new Set(records(account.secrets).map((secret) => secret.name));
  const because = `is not allowed because service account ${name} does not reference that`;
  for (const { secret } of records(spec.volumes)) {
    if (secret === undefined || allowed.has(secret.secretName)) continue;
    return `volume with secret.secretName="${secret.secretName ?? ''}" ${because} secret`;
  }
  const groups = { 'init container': spec.initContainers, container: spec.containers };
  for (const [sort, containers] of Object.entries(groups)) {
    for (const container of records(containers)) {
      const used = envSecrets(container).find((one) => !allowed.has(one.secret));
      if (used === undefined) continue;
      return `${sort} ${container.name} with ${used.by} referencing secret.secretName="${used.secret}" ${because} secret`;
    }
  }
  const pullable = new Set(records(account.imagePullSecrets).map((secret) => secret.name));
  const at = records(spec.imagePullSecrets).findIndex((secret) => !pullable.has(secret.name));
  if (at < 0) return undefined;
  return `imagePullSecrets[${at}].name="${records(spec.imagePullSecrets)[at]?.name ?? ''}" ${because} imagePullSecret`;
}

interface EnvSecret {
  readonly secret: string;
  readonly by: string;
}

function envSecrets({ env, envFrom }: Pick<Container, 'env' | 'envFrom'>): EnvSecret[] {
  const found: EnvSecret[] = [];
  for (const { name, valueFrom } of records(env)) {
    if (valueFrom?.secretKeyRef) found.push({ secret: valueFrom.secretKeyRef.name ?? '', by: `envVar ${name}` });
  }
  for (const { secretRef } of records(envFrom)) {
    if (secretRef) found.push({ secret: secretRef.name ?? '', by: 'envFrom' });
  }
  return found;
}
