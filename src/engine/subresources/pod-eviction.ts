/**
 * POST pods/NAME/eviction: deletes a pod if its disruption budget allows it. The disruption controller maintains the
 * budget's status; an eviction decrements it before it deletes the pod.
 */
import { assertPreconditions, deleteNamed } from '#engine/handlers/delete.ts';
import { decodeEntry, type Call } from '#engine/handlers/call.ts';
import { entryId } from '#engine/registry/stored-entries.ts';
import { respondStatus } from '#engine/handlers/respond.ts';
import { withoutAdmission, rewrite } from '#engine/handlers/write/rewrite.ts';
import type { SubresourceHandlers } from '#engine/handlers/call.ts';
import { deleteOptions, type DeleteRequestOptions } from '#engine/handlers/options.ts';
import type { Registry, Served } from '#engine/registry/registry.ts';
import type { ApiResponse } from '#engine/request/request.ts';
import { isPodReady, setPodCondition } from '#engine/subresources/pod-condition.ts';
import { evictionSchema } from '#engine/registry/kinds/subresource-kinds.ts';
import { postedKind, readPosted } from '#engine/subresources/posted-kind.ts';
import {
  ApiError,
  badRequest,
  forbidden,
  internalError,
  isApiError,
  notFound,
  tooManyRequests,
} from '#kube/api-error.ts';
import { labelRequirementsOf, matchesLabels, type LabelSelector } from '#kube/selectors/label-selector.ts';
import type { KubeObject } from '#kube/meta.ts';
import { timestamp } from '#lib/clock.ts';

const EVICTION = postedKind({ group: 'policy', version: 'v1', kind: 'Eviction' }, evictionSchema, ['policy/v1beta1']);

interface Budget extends KubeObject {
  spec?: { selector?: LabelSelector; unhealthyPodEvictionPolicy?: string };
  status?: {
    observedGeneration?: number;
    disruptionsAllowed?: number;
    currentHealthy?: number;
    desiredHealthy?: number;
    disruptedPods?: Record<string, string>;
  };
}

/** Maximum number of evictions that the controller has not seen yet. */
const MAX_DISRUPTED = 2000;

export function podEviction(registry: Registry): SubresourceHandlers {
  const budgets = registry.find('policy', 'v1', 'poddisruptionbudgets')!;
  return { create: (call) => evict(call, budgets) };
}

async function evict(call: Call, budgets: Served): Promise<ApiResponse> {
  const { name } = call.route;
  const { object, dryRun, warnings, attributes } = await readPosted(call, EVICTION);
  if (object.metadata.name !== name) throw badRequest('name in URL does not match name in Eviction object');
  const sent = (object['deleteOptions'] ?? {}) as Record<string, unknown>;
  const wanted = deleteOptions(call.request.query, dryRun ? { ...sent, dryRun: ['All'] } : sent);
  await call.admission.validate(attributes);
  call.admission.guard(attributes);

  const pod = currentPod(call);
  const options = await checkBudget(call, budgets, pod, wanted);
  await deletePod(call, pod, wanted, options);
  const status = respondStatus({ kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Success', code: 201 });
  return { ...status, warnings };
}

function currentPod(call: Call): KubeObject {
  const { resource } = call.served;
  const { namespace, name } = call.route;
  const entry = call.store.latest(resource.collection, entryId(resource, namespace, name));
  if (entry === undefined) throw notFound(resource, name);
  return decodeEntry(entry, resource);
}

/** Returns the options of the delete. Throws if the budget does not allow it. */
async function checkBudget(
  call: Call,
  budgets: Served,
  pod: KubeObject,
  wanted: DeleteRequestOptions,
): Promise<DeleteRequestOptions> {
  const unchanged = { ...wanted, resourceVersion: wanted.resourceVersion ?? pod.metadata.resourceVersion };
  const { phase } = (pod['status'] ?? {}) as { phase?: string };
  const ended = phase === 'Succeeded' || phase === 'Failed' || pod.metadata.deletionTimestamp !== undefined;
  if (ended) return wanted;
  // The pod must not have started meanwhile, or it would count.
  if (phase === 'Pending') return unchanged;
  const guarding = budgetsOf(call, budgets, pod);
  if (guarding.length === 0) return wanted;
  if (guarding.length > 1) {
    throw internalError(
      'This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.',
    );
  }
  const budget = guarding[0]!;
  if (!isPodReady(pod) && mayEvictUnhealthy(budget)) return unchanged;
  const { name = '', namespace = '' } = budget.metadata;
  const now = timestamp(call.clock.now());
  const change = (current: KubeObject) => consumeDisruption(current, pod.metadata.name!, now);
  await rewrite({ ...call, served: budgets }, { namespace, name, dryRun: wanted.dryRun, change });
  return wanted;
}

function budgetsOf(call: Call, { resource }: Served, { metadata }: KubeObject): Budget[] {
  const { entries } = call.store.list(resource.collection, { prefix: `${metadata.namespace}/` });
  return entries
    .map((entry) => decodeEntry(entry, resource) as Budget)
    .filter(({ spec }) => {
      const { selector } = spec ?? {};
      return selector !== undefined && matchesLabels(labelRequirementsOf(selector), metadata.labels);
    });
}

/** A pod that is not ready does not count as healthy; its budget decides whether it may be evicted. */
function mayEvictUnhealthy({ spec, status = {} }: Budget): boolean {
  if (spec?.unhealthyPodEvictionPolicy === 'AlwaysAllow') return true;
  const { currentHealthy = 0, desiredHealthy = 0 } = status;
  return currentHealthy >= desiredHealthy && desiredHealthy > 0;
}

function consumeDisruption(object: KubeObject, pod: string, now: string): void {
  const budget = object as Budget;
  const { metadata, status = {} } = budget;
  const { disruptionsAllowed = 0, disruptedPods = {}, desiredHealthy = 0, currentHealthy = 0 } = status;
  const name = metadata.name ?? '';
  if ((status.observedGeneration ?? 0) < (metadata.generation ?? 0)) throw budgetNotProcessed(name);
  if (Object.keys(disruptedPods).length > MAX_DISRUPTED) {
    const why = 'DisruptedPods map too big - too many evictions not confirmed by PDB controller';
    throw forbidden({ group: 'policy', plural: 'poddisruptionbudget' }, name, why);
  }
  if (disruptionsAllowed <= 0) {
    const why = `The disruption budget ${name} needs ${desiredHealthy} healthy pods and has ${currentHealthy} currently`;
    throw budgetViolation(why, 0);
  }
  budget.status = {
    ...status,
    disruptionsAllowed: disruptionsAllowed - 1,
    disruptedPods: { ...disruptedPods, [pod]: now },
  };
}

async function deletePod(
  call: Call,
  pod: KubeObject,
  wanted: DeleteRequestOptions,
  options: DeleteRequestOptions,
): Promise<void> {
  const { name, namespace } = call.route;
  let { resourceVersion } = options;
  try {
    if (!options.dryRun) {
      const marked = await rewrite(call, {
        namespace,
        name,
        dryRun: false,
        change: (current) => markEvicted(call, current, options),
      });
      if (resourceVersion !== undefined) ({ resourceVersion } = marked.metadata);
    }
    await deleteNamed(withoutAdmission(call), name, namespace, { ...options, resourceVersion });
  } catch (error) {
    // The version was our own precondition, so the client may retry.
    const ours = wanted.resourceVersion === undefined && options.resourceVersion !== undefined;
    if (ours && isApiError(error, 'Conflict')) throw budgetNotProcessed(pod.metadata.name ?? '');
    throw error;
  }
}

/** Records the reason on the pod that was evicted. */
function markEvicted(call: Call, pod: KubeObject, options: DeleteRequestOptions): void {
  assertPreconditions(call, pod, options);
  const condition = {
    type: 'DisruptionTarget',
    status: 'True',
    reason: 'EvictionByEvictionAPI',
    message: 'Eviction API: evicting',
  };
  setPodCondition(pod, condition, timestamp(call.clock.now()));
}

function budgetNotProcessed(budget: string): ApiError {
  return budgetViolation(`The disruption budget ${budget} is still being processed by the server.`, 10);
}

function budgetViolation(why: string, retryAfterSeconds: number): ApiError {
  const text = "Cannot evict pod as it would violate the pod's disruption budget.";
  const { code, reason, message, details } = tooManyRequests(text, retryAfterSeconds);
  const causes = [{ reason: 'DisruptionBudget', message: why }];
  return new ApiError(code, reason, message, { details: { ...details, causes } });
}
