/**
 * Claims that a pod uses, and volumes that are bound, do not go while they are needed: finalizers of Kubernetes' own
 * hold them. In Kubernetes admission sets them; here the controllers do, which Kubernetes' do as well.
 */
import { VOLUME_PROTECTION } from '#kube/volume-keys.ts';
import type { EngineController } from '#engine/controllers/engine-controller.ts';
import { ENGINE_PODS } from '#engine/controllers/kinds.ts';
import { claimKeysOf, ClaimUse } from '#engine/controllers/persistent-volume/claim-use.ts';
import { removeListItem } from '#engine/controllers/remove-list-item.ts';
import { PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, type PersistentVolume } from '#kube/core-kinds.ts';
import type { KubeObject, ResourceType, Stored } from '#kube/meta.ts';
import { defineController, source, startController } from '#runtime/controller.ts';
import { NOTHING, type Plan } from '#runtime/plan.ts';

export const CLAIM_FINALIZER = 'kubernetes.io/pvc-protection';
const CONCURRENCY = 10;

export interface ProtectedWorld {
  readonly object: Stored;
  readonly type: ResourceType;
  readonly finalizer: string;
  /** Only asked for what is to go. */
  readonly used: boolean;
}

/** Pure. */
export function decideProtection({ object, type, finalizer, used }: ProtectedWorld): Plan {
  const { namespace, name, uid, finalizers = [], deletionTimestamp } = object.metadata;
  const index = finalizers.indexOf(finalizer);
  const target = { do: 'patch', type, name: { namespace, name }, uid } as const;
  if (deletionTimestamp !== undefined) {
    if (index < 0 || used) return NOTHING;
    const patch = { type: 'json' as const, body: removeListItem('/metadata/finalizers', index, finalizer) };
    return { changes: [{ ...target, patch, why: 'nobody uses it any more' }] };
  }
  if (index >= 0) return NOTHING;
  // The list is a set, which a strategic merge adds to.
  const patch = { type: 'strategic' as const, body: { metadata: { finalizers: [finalizer] } } };
  return { changes: [{ ...target, patch, why: 'it may not go while it is used' }] };
}

export const claimProtection: EngineController = {
  account: 'pvc-protection-controller',
  start(parts) {
    const claims = parts.informer(PERSISTENT_VOLUME_CLAIMS);
    const pods = parts.informer(ENGINE_PODS);
    const use = new ClaimUse(pods, parts.client);
    const definition = defineController<ProtectedWorld>({
      name: 'pvc-protection-controller',
      type: PERSISTENT_VOLUME_CLAIMS,
      concurrency: CONCURRENCY,
      sources: [source(claims), source(pods, (pod) => claimKeysOf(pod).filter((key) => isDeleting(claims.get(key))))],
      async observe(key, options) {
        const object = claims.get(key);
        if (object === undefined) return undefined;
        const used = isDeleting(object) && (await use.isUsed(object, options));
        return { object, type: PERSISTENT_VOLUME_CLAIMS, finalizer: CLAIM_FINALIZER, used };
      },
      decide: decideProtection,
      subject: ({ object }) => object,
    });
    return startController(definition, parts);
  },
};

export const volumeProtection: EngineController = {
  account: 'pv-protection-controller',
  start(parts) {
    const volumes = parts.informer(PERSISTENT_VOLUMES);
    const definition = defineController<ProtectedWorld>({
      name: 'pv-protection-controller',
      type: PERSISTENT_VOLUMES,
      concurrency: CONCURRENCY,
      sources: [source(volumes)],
      observe(key) {
        const object = volumes.get(key);
        if (object === undefined) return undefined;
        return { object, type: PERSISTENT_VOLUMES, finalizer: VOLUME_PROTECTION, used: isBound(object) };
      },
      decide: decideProtection,
      subject: ({ object }) => object,
    });
    return startController(definition, parts);
  },
};

function isBound({ status }: PersistentVolume): boolean {
  return status?.phase === 'Bound';
}

function isDeleting(object: KubeObject | undefined): boolean {
  return object?.metadata.deletionTimestamp !== undefined;
}
