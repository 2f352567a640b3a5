/**
 * Reviews evictions of launcher pods, for example by `kubectl drain`. If the guest can be migrated instead, the
 * eviction is refused with 429, so that the client retries, and the instance is marked; a controller then migrates it.
 * All other pods are evicted as usual. The webhook is called for all evictions; without a response from it they
 * proceed.
 */
import type { ReviewRequest, AdmissionDecision } from '#admission/review.ts';
import type { Configuration } from '#api/kubevirt/configuration.ts';
import type { EvictionStrategy } from '#api/kubevirt/kind.ts';
import { isMigrating } from '#api/migration/migration-state.ts';
import { APP_LABEL, CREATED_BY_LABEL, DOMAIN_ANNOTATION, LAUNCHER_APP } from '#api/names.ts';
import { type VirtualMachineInstance, isFinal } from '#api/virtual-machine-instance/kind.ts';
import { findCondition } from '#kube/conditions.ts';
import type { Pod } from '#kube/core-kinds.ts';
import { isDeleting, isRecord, type Stored } from '#kube/meta.ts';
import { errorMessage } from '#lib/error-message.ts';

/** Reads from the API, not from a cache: a wrong refusal would block the drain, and a wrong eviction stops a guest. */
export interface EvictionLookup {
  configuration(): Configuration;
  pod(namespace: string, name: string): Promise<Stored<Pod> | undefined>;
  instance(namespace: string, name: string): Promise<Stored<VirtualMachineInstance> | undefined>;
}

export interface EvictionParts {
  readonly lookup: EvictionLookup;
  /** Writes `status.evacuationNodeName` of this instance. */
  markForEvacuation(vmi: Stored<VirtualMachineInstance>, nodeName: string): Promise<void>;
}

export async function reviewPodEviction(
  request: ReviewRequest,
  { lookup, markForEvacuation }: EvictionParts,
): Promise<AdmissionDecision> {
  const { operation, namespace, name } = request;
  if (operation !== 'CREATE' || name === '') return {};
  const pod = await lookup.pod(namespace, name);
  const domain = pod?.metadata.annotations?.[DOMAIN_ANNOTATION];
  if (pod?.metadata.labels?.[APP_LABEL] !== LAUNCHER_APP || domain === undefined) return {};
  const vmi = await lookup.instance(namespace, domain);
  if (vmi === undefined) return {};
  const decision = decideEviction(pod, vmi, vmi.spec.evictionStrategy ?? lookup.configuration().evictionStrategy);
  if (decision === undefined) return {};
  if (decision.mark !== undefined && !isDryRun(request)) {
    try {
      await markForEvacuation(vmi, decision.mark);
    } catch (error) {
      const cause = errorMessage(error);
      return { tooManyRequests: `kubevirt failed marking the vmi for eviction: ${cause}` };
    }
  }
  return { tooManyRequests: decision.refusal };
}

interface EvictionRefusal {
  readonly refusal: string;
  /** The node that the instance must leave, if that is not written yet. */
  readonly mark?: string;
}

/** Returns undefined if the pod may be evicted. Pure. */
function decideEviction(
  pod: Stored<Pod>,
  vmi: Stored<VirtualMachineInstance>,
  strategy: EvictionStrategy,
): EvictionRefusal | undefined {
  const { nodeName } = pod.spec;
  if (strategy === 'None' || hasNoGuest(pod, vmi) || !nodeName) return undefined;
  const { namespace = '', name } = vmi.metadata;
  const { status } = vmi;
  const isMoving = isMigrating(status?.migrationState);
  if (status?.nodeName !== nodeName) {
    // The target pod of a migration is needed until the migration ends; any other pod without the guest is not.
    return isMoving ? { refusal: `VMI "${namespace}/${name}" is migrating to this node` } : undefined;
  }
  const migratable = findCondition(status.conditions, 'LiveMigratable');
  const canLeave = strategy === 'External' || isMoving || migratable?.status === 'True';
  if (!canLeave && strategy === 'LiveMigrateIfPossible') return undefined;
  if (!canLeave) {
    const cause = migratable?.message ? `: ${migratable.message}` : '';
    return { refusal: `VMI ${name} is configured with an eviction strategy but is not live-migratable${cause}` };
  }
  // The descheduler matches this text.
  const refusal = `Eviction triggered evacuation of VMI "${namespace}/${name}"`;
  if (status.evacuationNodeName === nodeName) return { refusal: `Evacuation in progress: ${refusal}` };
  return { refusal, mark: nodeName };
}

function hasNoGuest(pod: Stored<Pod>, vmi: Stored<VirtualMachineInstance>): boolean {
  const { phase } = pod.status ?? {};
  if (phase === 'Succeeded' || phase === 'Failed' || isDeleting(pod)) return true;
  return pod.metadata.labels?.[CREATED_BY_LABEL] !== vmi.metadata.uid || isFinal(vmi) || isDeleting(vmi);
}

/** Also checks the object: `kubectl drain --dry-run=server` sets dryRun there only. */
function isDryRun({ dryRun, object }: ReviewRequest): boolean {
  const options = object?.['deleteOptions'];
  const stages = isRecord(options) ? options['dryRun'] : undefined;
  return dryRun || (Array.isArray(stages) && stages.length > 0);
}
