/**
 * Decides which claims belong to a node: those whose volume is on the node, and those that a pod or a custom object of the
 * node names, such as an instance with a hotplugged disk. During a migration, a claim belongs to both nodes.
 */
import { DEFINITIONS, findReference, isBoundObject, nodePlacesOf } from '#engine/auth/node-reads.ts';
import { decodeStored } from '#engine/encoding/stored-object.ts';
import type { Store } from '#engine/store/store.ts';
import { isRecord, type KubeObject } from '#kube/meta.ts';

/** The fields that name a claim. A DataVolume has a claim of its own name. */
const CLAIM_FIELDS = { persistentVolumeClaim: 'claimName', memoryDump: 'claimName', dataVolume: 'name' };

/** `collections` are those of the custom kinds. */
export function isClaimOfNode(store: Store, node: string, claim: KubeObject, collections: readonly string[]): boolean {
  return (
    isVolumeOnNode(store, node, claim) ||
    isNamedByPod(store, node, claim) ||
    collections.some((collection) => isNamedByObject(store, node, claim, collection))
  );
}

/** Our volumes name their node in an annotation. */
function isVolumeOnNode(store: Store, node: string, claim: KubeObject): boolean {
  const { volumeName } = specOf(claim);
  const entry = typeof volumeName === 'string' ? store.get('persistentvolumes', volumeName) : undefined;
  if (entry === undefined) return false;
  const volume = decodeStored(entry.bytes);
  const { claimRef } = specOf(volume);
  const { labels = {}, annotations = {} } = volume.metadata;
  const isBound = isRecord(claimRef) && claimRef['uid'] === claim.metadata.uid;
  return isBound && [...Object.values(labels), ...Object.values(annotations)].includes(node);
}

function isNamedByPod(store: Store, node: string, { metadata }: KubeObject): boolean {
  const { name = '', namespace = '' } = metadata;
  const owner = metadata.ownerReferences?.find(({ kind, controller }) => kind === 'Pod' && controller === true);
  const [quotedName, quotedNode] = [JSON.stringify(name), JSON.stringify(node)];
  return store.list('pods', { prefix: `${namespace}/` }).entries.some(({ bytes }) => {
    if (!bytes.includes(quotedNode)) return false;
    // The claim of an ephemeral volume belongs to its pod, which does not name it.
    if (owner === undefined && !bytes.includes(quotedName)) return false;
    const pod = decodeStored(bytes);
    const spec = specOf(pod);
    if (spec['nodeName'] !== node) return false;
    return owner?.uid === pod.metadata.uid || findReference(spec, name, CLAIM_FIELDS);
  });
}

function isNamedByObject(store: Store, node: string, { metadata }: KubeObject, collection: string): boolean {
  const places = nodePlacesOf(store.get(DEFINITIONS, collection));
  if (places === undefined || places.label === '') return false;
  const { name = '', namespace = '' } = metadata;
  const quotedName = JSON.stringify(name);
  return store.list(collection, { prefix: `${namespace}/` }).entries.some((entry) => {
    if (!entry.bytes.includes(quotedName)) return false;
    // Not the status, which the node itself writes.
    const spec = specOf(decodeStored(entry.bytes));
    return findReference(spec, name, CLAIM_FIELDS) && isBoundObject(store, node, entry, places);
  });
}

function specOf(object: KubeObject): Record<string, unknown> {
  return isRecord(object['spec']) ? object['spec'] : {};
}
