/**
 * Assigns pods a service account of their namespace: it must exist, its pull secrets are added, and its token is
 * mounted into the containers. Kubernetes' ServiceAccount plugin.
 */
import type { AdmissionAttributes, MutatingStep, ValidatingStep } from '#engine/admission/admission.ts';
import { refuse } from '#engine/admission/admission.ts';
import { POD_TOKEN_SECONDS } from '#engine/auth/service-accounts/claims.ts';
import { findUnmountableSecret, refersToSecrets, type ServiceAccount } from '#engine/admission/pod-secrets.ts';
import { decodeStored } from '#engine/encoding/stored-object.ts';
import type { EnginePodSpec } from '#engine/registry/kinds/pod-spec/pod-spec.ts';
import { records } from '#engine/registry/kinds/shared/reading.ts';
import type { Store } from '#engine/store/store.ts';
import type { ApiError } from '#kube/api-error.ts';
import { isRecord } from '#kube/meta.ts';
import { systemClock, type Clock } from '#lib/clock.ts';
import { generateName } from '#lib/ids.ts';

const COLLECTION = 'serviceaccounts';
const DEFAULT = 'default';
/** Time that the controller has to create the default account of a new namespace. */
const ARRIVAL_MS = 2000;
/** Marks the mirror of a static pod. */
export const MIRROR = 'kubernetes.io/config.mirror';
const VOLUME_PREFIX = 'kube-api-access-';
const MOUNT_PATH = '/var/run/secrets/kubernetes.io/serviceaccount';

/** Must run after namespaceLifecycle, which reports a missing namespace. */
export function serviceAccountAdmission(store: Store, clock: Clock = systemClock): MutatingStep {
  return (attributes) => {
    const spec = newPodSpec(attributes);
    if (spec === undefined) return;
    if (isMirror(attributes)) return checkMirror(attributes, spec);
    // Keeps the deprecated field equal to the current one, which takes precedence.
    const name = spec.serviceAccountName || spec.serviceAccount || DEFAULT;
    spec.serviceAccountName = name;
    spec.serviceAccount = name;
    const id = `${attributes.namespace}/${name}`;
    const account = accountOf(store, id);
    if (account !== undefined) return admit(attributes, spec, account);
    if (name !== DEFAULT) throw missing(attributes, name);
    return admitAfterArrival(attributes, spec, waitForAccount(store, clock, id, attributes.signal));
  };
}

async function admitAfterArrival(
  attributes: AdmissionAttributes,
  spec: EnginePodSpec,
  arriving: Promise<ServiceAccount | undefined>,
): Promise<void> {
  const account = await arriving;
  if (account === undefined) throw missing(attributes, spec.serviceAccountName ?? '');
  admit(attributes, spec, account);
}

/** Checks the pod again after other steps changed it. */
export function serviceAccountValidation(store: Store): ValidatingStep {
  return (attributes) => {
    const spec = newPodSpec(attributes);
    if (spec === undefined) return;
    if (isMirror(attributes)) return checkMirror(attributes, spec);
    const { serviceAccountName: name = '' } = spec;
    const { namespace } = attributes;
    if (name === '') throw refuse(attributes, `no service account specified for pod ${namespace}/${attributes.name}`);
    const account = accountOf(store, `${namespace}/${name}`);
    if (account === undefined) throw missing(attributes, name);
    checkMountable(attributes, spec, account);
  };
}

function newPodSpec({ operation, resource, subresource, object }: AdmissionAttributes): EnginePodSpec | undefined {
  if (operation !== 'CREATE' || resource.collection !== 'pods' || subresource !== '') return undefined;
  const spec = object?.['spec'];
  return isRecord(spec) ? (spec as EnginePodSpec) : undefined;
}

/** Includes writes in flight: the pod's write comes after them, and fails with them. */
function accountOf(store: Store, id: string): ServiceAccount | undefined {
  const entry = store.latest(COLLECTION, id);
  return entry && decodeStored(entry.bytes);
}

function waitForAccount(
  store: Store,
  clock: Clock,
  id: string,
  signal: AbortSignal,
): Promise<ServiceAccount | undefined> {
  return new Promise((resolve) => {
    const finish = () => {
      stopWatch();
      cancelTimer();
      signal.removeEventListener('abort', finish);
      resolve(accountOf(store, id));
    };
    const stopWatch = store.watch({ collection: COLLECTION, prefix: id, since: store.revision }, (events) => {
      if (events.some(({ type, entry }) => type === 'put' && entry.id === id)) finish();
    });
    const cancelTimer = clock.after(ARRIVAL_MS, finish);
    signal.addEventListener('abort', finish);
  });
}

function admit(attributes: AdmissionAttributes, spec: EnginePodSpec, account: ServiceAccount): void {
  if (spec.automountServiceAccountToken ?? account.automountServiceAccountToken ?? true) mountToken(spec);
  const pullSecrets = records(account.imagePullSecrets);
  if (records(spec.imagePullSecrets).length === 0 && pullSecrets.length > 0) {
    spec.imagePullSecrets = pullSecrets.map(({ name = '' }) => ({ name }));
  }
  checkMountable(attributes, spec, account);
}

function mountToken(spec: EnginePodSpec): void {
  const present = records(spec.volumes).find(({ name }) => name?.startsWith(VOLUME_PREFIX))?.name;
  const name = present ?? generateName(VOLUME_PREFIX);
  let mounted = false;
  for (const container of [...records(spec.initContainers), ...records(spec.containers)]) {
    const mounts = records(container.volumeMounts);
    // A container that mounts something at this path does not want the token.
    if (mounts.some(({ mountPath }) => mountPath === MOUNT_PATH)) continue;
    container.volumeMounts = [...mounts, { name, readOnly: true, mountPath: MOUNT_PATH }];
    mounted = true;
  }
  if (mounted && present === undefined) spec.volumes = [...records(spec.volumes), tokenVolume(name)];
}

function tokenVolume(name: string): NonNullable<EnginePodSpec['volumes']>[number] {
  const fieldRef = { apiVersion: 'v1', fieldPath: 'metadata.namespace' };
  return {
    name,
    projected: {
      sources: [
        { serviceAccountToken: { expirationSeconds: POD_TOKEN_SECONDS, path: 'token' } },
        { configMap: { name: 'kube-root-ca.crt', items: [{ key: 'ca.crt', path: 'ca.crt' }] } },
        { downwardAPI: { items: [{ path: 'namespace', fieldRef }] } },
      ],
      defaultMode: 0o644,
    },
  };
}

function checkMountable(attributes: AdmissionAttributes, spec: EnginePodSpec, account: ServiceAccount): void {
  const error = findUnmountableSecret(account, spec);
  if (error !== undefined) throw refuse(attributes, error);
}

/** A mirror pod must stay as the node created it. */
function isMirror({ object }: AdmissionAttributes): boolean {
  return Object.hasOwn(object?.metadata.annotations ?? {}, MIRROR);
}

function checkMirror(attributes: AdmissionAttributes, spec: EnginePodSpec): void {
  if (spec.serviceAccountName || spec.serviceAccount) {
    throw refuse(attributes, 'a mirror pod may not reference service accounts');
  }
  if (refersToSecrets(spec)) throw refuse(attributes, 'a mirror pod may not reference secrets');
  for (const { projected } of records(spec.volumes)) {
    if (!records(projected?.sources).some((source) => source.serviceAccountToken !== undefined)) continue;
    throw refuse(attributes, 'a mirror pod may not use ServiceAccountToken volume projections');
  }
}

function missing(attributes: AdmissionAttributes, name: string): ApiError {
  const { namespace } = attributes;
  const why = `error looking up service account ${namespace}/${name}: serviceaccount "${name}" not found`;
  return refuse(attributes, why);
}
