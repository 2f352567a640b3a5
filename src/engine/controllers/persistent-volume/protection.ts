/**
 * Protects claims that a pod uses, and volumes that are bound, from removal. They have the same finalizers as in
 * Kubernetes. Kubernetes sets them in admission and in controllers; here only the controllers do.
 */
import { VOLUME_PROTECTION } from '#kube/volume-keys.ts';
import type { EngineController } from '#engine/controllers/engine-controller.ts';
import { ENGINE_PODS } from '#engine/controllers/kinds.ts';
import { claimKeysOf, ClaimUse } from '#engine/controllers/persistent-volume/claim-use.ts';
import { removeListItem } from '#engine/controllers/remove-list-item.ts';
import { PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, type PersistentVolume } from '#kube/core-kinds.ts';
import type { KubeObject, ResourceType, Stored } from '#kube/meta.ts';
import { defineController, source, startController } from '#runtime/controller.ts';
import { USE_RECHECK_MS } from '#runtime/live-use.ts';
import { EMPTY_PLAN, type Plan } from '#runtime/plan.ts';

const CLAIM_FINALIZER = 'kubernetes.io/pvc-protection';
const CONCURRENCY = 10;

interface ProtectedWorld {
  readonly object: Stored;
  readonly type: ResourceType;
  readonly finalizer: string;
  /** Determined only for objects under deletion; otherwise false. */
  readonly used: boolean;
}

/** Decides whether the finalizer is added or removed. Pure. */
export function decideProtection({ object, type, finalizer, used }: ProtectedWorld): Plan {
  const { namespace, name, uid, finalizers = [], deletionTimestamp } = object.metadata;
  const index = finalizers.indexOf(finalizer);
  const target = { do: 'patch', type, name: { namespace, name }, uid } as const;
  if (deletionTimestamp !== undefined) {
    if (index < 0) return EMPTY_PLAN;
    if (used) return { changes: [], requeueAfterMs: USE_RECHECK_MS };
    const patch = { type: 'json' as const, body: removeListItem('/metadata/finalizers', index, finalizer) };
    return { changes: [{ ...target, patch, why: 'it is no longer in use' }] };
  }
  if (index >= 0) return EMPTY_PLAN;
  // A strategic merge patch adds to the list.
  const patch = { type: 'strategic' as const, body: { metadata: { finalizers: [finalizer] } } };
  return { changes: [{ ...target, patch, why: 'it must not be removed while it is in use' }] };
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
