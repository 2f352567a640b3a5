/**
 * Checks the pods that a node may create: mirrors of its static pods, bound to and owned by the node. They must not
 * reference other objects, because a node may read what its pods reference. Pure.
 */
import { MIRROR } from '#engine/admission/service-account.ts';
import { refersToSecrets } from '#engine/admission/pod-secrets.ts';
import type { EnginePodSpec } from '#engine/registry/kinds/pod-spec/pod-spec.ts';
import { records } from '#engine/registry/kinds/shared/reading.ts';
import { isRecord, type KubeObject, type OwnerReference } from '#kube/meta.ts';

/**
 * Returns why the node may not create the pod, or undefined if it may. `nodeUid` returns the UID of its Node object.
 */
export function findMirrorPodError(pod: KubeObject, nodeName: string, nodeUid: () => string): string | undefined {
  const node = `node ${JSON.stringify(nodeName)}`;
  if (!Object.hasOwn(pod.metadata.annotations ?? {}, MIRROR)) {
    return `pod does not have ${JSON.stringify(MIRROR)} annotation, ${node} can only create mirror pods`;
  }
  const spec = (isRecord(pod['spec']) ? pod['spec'] : {}) as EnginePodSpec;
  if (spec.nodeName !== nodeName) return `${node} can only create pods with spec.nodeName set to itself`;
  const owners = records(pod.metadata.ownerReferences);
  return findOwnerError(owners, nodeName, nodeUid) ?? findReferenceError(spec, node);
}

function findOwnerError(
  owners: readonly OwnerReference[],
  nodeName: string,
  nodeUid: () => string,
): string | undefined {
  const node = `node ${JSON.stringify(nodeName)}`;
  if (owners.length > 1) return `${node} can only create pods with a single owner reference set to itself`;
  const [owner] = owners;
  if (owner === undefined || owner.apiVersion !== 'v1' || owner.kind !== 'Node' || owner.name !== nodeName) {
    return `${node} can only create pods with an owner reference set to itself`;
  }
  if (owner.controller !== true) {
    return `${node} can only create pods with a controller owner reference set to itself`;
  }
  if (owner.blockOwnerDeletion === true) return `${node} must not set blockOwnerDeletion on an owner reference`;
  const uid = nodeUid();
  return owner.uid === uid ? undefined : `node ${nodeName} UID mismatch: expected ${owner.uid} got ${uid}`;
}

function findReferenceError(spec: EnginePodSpec, node: string): string | undefined {
  const cannotReference = (what: string) => `${node} can not create pods that reference ${what}`;
  if (spec.serviceAccountName) return cannotReference('a service account');
  if (refersToSecrets(spec)) return cannotReference('secrets');
  if (refersToConfigMaps(spec)) return cannotReference('configmaps');
  const volumes = records(spec.volumes);
  const projects = (source: string) =>
    volumes.some(({ projected }) => records(projected?.sources).some((one) => Object.hasOwn(one, source)));
  if (projects('clusterTrustBundle')) return cannotReference('clustertrustbundles');
  if (volumes.some((volume) => volume.persistentVolumeClaim !== undefined))
    return cannotReference('persistentvolumeclaims');
  return records(spec.resourceClaims).length > 0 ? cannotReference('resourceclaims') : undefined;
}

function refersToConfigMaps(spec: EnginePodSpec): boolean {
  const containers = [
    ...records(spec.initContainers),
    ...records(spec.containers),
    ...records(spec.ephemeralContainers),
  ];
  return (
    containers.some(
      ({ env, envFrom }) =>
        records(env).some(({ valueFrom }) => isRecord(valueFrom?.configMapKeyRef)) ||
        records(envFrom).some(({ configMapRef }) => isRecord(configMapRef)),
    ) ||
    records(spec.volumes).some(
      ({ configMap, projected }) =>
        isRecord(configMap) || records(projected?.sources).some((source) => isRecord(source.configMap)),
    )
  );
}
