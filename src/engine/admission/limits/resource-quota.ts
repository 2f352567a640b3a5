/**
 * Enforces ResourceQuotas, with the messages of Kubernetes. A guard counts the stored objects and the writes in flight
 * in the same turn as the write, so two requests can never share the last free amount. No usage is stored for the
 * decision; the status of a quota, which users read, is written by the controller from the same count (ADR 23).
 */
import type { AdmissionAttributes, Guard, ValidatingStep } from '#engine/admission/admission.ts';
import { refuse } from '#engine/admission/admission.ts';
import {
  type Amounts,
  amountsOf,
  amountsText,
  isPodLevelResource,
  NO_AMOUNT,
} from '#engine/registry/kinds/pod-spec/pod-amounts.ts';
import { amountsAt, computeAmounts, type Measured, measureObject } from '#engine/admission/limits/measure.ts';
import type { Quota } from '#engine/admission/limits/quota.ts';
import { countUse, prepareCount, quotasOf, type Spend } from '#engine/admission/limits/quota-usage.ts';
import { matchesScopes } from '#engine/admission/limits/scopes.ts';
import { isEventCollection } from '#engine/registry/kinds/core/event.ts';
import type { EnginePodSpec } from '#engine/registry/kinds/pod-spec/pod-spec.ts';
import type { UserInfo } from '#engine/request/request.ts';
import type { Store } from '#engine/store/store.ts';
import type { Clock } from '#lib/clock.ts';
import { isRecord, type KubeObject } from '#kube/meta.ts';
import { addQuantities, type Quantity } from '#kube/quantity.ts';

interface QuotaSteps {
  /** Measures the objects to count before the guard runs. */
  readonly validating: ValidatingStep;
  readonly guard: Guard;
}

interface QuotaParts {
  readonly store: Store;
  readonly clock: Clock;
  /** Returns the function that charges work to a user. */
  spendOf(user: UserInfo): Spend;
}

export function resourceQuotaAdmission({ store, clock, spendOf }: QuotaParts): QuotaSteps {
  return {
    validating(attributes) {
      if (!canUseMore(attributes)) return undefined;
      const quotas = quotasOf(store, attributes.namespace);
      if (quotas.length === 0) return undefined;
      const { collection } = attributes.resource;
      return prepareCount(store, quotas, { collection, spend: spendOf(attributes.user) });
    },
    guard(attributes) {
      if (!canUseMore(attributes)) return;
      const quotas = quotasOf(store, attributes.namespace);
      if (quotas.length === 0) return;
      const { resource, object, oldObject } = attributes;
      const { collection } = resource;
      const nowMs = clock.now();
      const error = findQuotaError(quotas, {
        collection,
        object: object!,
        before: oldObject && measureObject(collection, oldObject),
        nowMs,
        countUse: (quota, names) => countUse(store, quota, { collection, names, nowMs }),
      });
      if (error !== undefined) throw refuse(attributes, error);
    },
  };
}

const CLAIMS = 'persistentvolumeclaims';

/** Reports whether a request can use more of a quota. Events and reviews are not counted. */
function canUseMore({ operation, resource, subresource, object, oldObject }: AdmissionAttributes): boolean {
  if (!resource.namespaced || resource.isReview === true || object === undefined) return false;
  // The allocated resources of a claim are in its status.
  if (subresource !== '') return subresource === 'status' && operation === 'UPDATE' && resource.collection === CLAIMS;
  if (operation === 'CREATE') return !isEventCollection(resource.collection);
  if (operation !== 'UPDATE') return false;
  switch (resource.collection) {
    case CLAIMS:
    case 'services':
      return true;
    case 'pods':
      // Its resources cannot change, but it can enter a scope.
      return hasDeadline(object) !== hasDeadline(oldObject);
    default:
      return false;
  }
}

function hasDeadline(pod: KubeObject | undefined): boolean {
  return isRecord(pod?.['spec']) && pod['spec']['activeDeadlineSeconds'] !== undefined;
}

interface QuotaRequest {
  readonly collection: string;
  readonly object: KubeObject;
  /** The measure of the object that is replaced. */
  readonly before?: Measured | undefined;
  readonly nowMs: number;
  /** Returns the present use of these resources. */
  countUse(quota: Quota, names: readonly string[]): Amounts;
}

/** Returns why a quota forbids the request, or undefined if all of them allow it. Pure. */
function findQuotaError(quotas: readonly Quota[], request: QuotaRequest): string | undefined {
  const { collection, object, before, nowMs } = request;
  const measured = measureObject(collection, object);
  const affected = quotas.filter(
    ({ resources, scopes }) => resources.has(collection) && matchesScopes(measured.facts, scopes),
  );
  if (collection === 'pods') {
    for (const { name, resources } of affected) {
      const missing = findMissingResources(object['spec'] as EnginePodSpec, resources.get(collection)!);
      if (missing !== undefined) return `failed quota: ${name}: must specify ${missing}`;
    }
  }
  const amounts = amountsAt(measured, nowMs);
  for (const quota of affected) {
    const counted = before !== undefined && matchesScopes(before.facts, quota.scopes) ? before : undefined;
    const requested = growth(amounts, counted && amountsAt(counted, nowMs), quota.resources.get(collection)!);
    if (requested.size === 0) continue;
    const used = request.countUse(quota, [...requested.keys()]);
    const exceeded = [...requested].filter(
      ([name, amount]) => addQuantities(used.get(name) ?? NO_AMOUNT, amount).nanos > quota.hard.get(name)!.nanos,
    );
    if (exceeded.length === 0) continue;
    const only = (of: Amounts) => amountsText(new Map(exceeded.map(([name]) => [name, of.get(name) ?? NO_AMOUNT])));
    return `exceeded quota: ${quota.name}, requested: ${only(requested)}, used: ${only(used)}, limited: ${only(quota.hard)}`;
  }
  return undefined;
}

/** Returns by how much each of the resources grows, without those that do not. */
function growth(amounts: Amounts, before: Amounts | undefined, names: readonly string[]): Map<string, Quantity> {
  const requested = new Map<string, Quantity>();
  for (const name of names) {
    const { nanos, format } = amounts.get(name) ?? NO_AMOUNT;
    const more = nanos - (before?.get(name)?.nanos ?? 0n);
    if (more > 0n) requested.set(name, { nanos: more, format });
  }
  return requested;
}

/** Resources that every container must name if a quota limits them. */
const REQUIRED = new Set(['cpu', 'memory', 'requests.cpu', 'requests.memory', 'limits.cpu', 'limits.memory']);

/** Returns the resources that containers do not name although a quota limits them, as in Kubernetes' message. */
function findMissingResources(spec: EnginePodSpec, limited: readonly string[]): string | undefined {
  const required = limited.filter((name) => REQUIRED.has(name)).sort();
  const whole = [...amountsOf(spec.resources?.requests).keys(), ...amountsOf(spec.resources?.limits).keys()];
  if (required.length === 0 || whole.some(isPodLevelResource)) return undefined;
  const missing = new Map<string, Set<string>>(required.map((name) => [name, new Set()]));
  for (const { name, resources } of [...(spec.containers ?? []), ...(spec.initContainers ?? [])]) {
    const named = computeAmounts(amountsOf(resources?.requests), amountsOf(resources?.limits));
    for (const resource of required) if (!named.has(resource)) missing.get(resource)!.add(name);
  }
  const texts = [...missing].filter(([, names]) => names.size > 0);
  if (texts.length === 0) return undefined;
  return texts.map(([resource, names]) => `${resource} for: ${[...names].sort().join(',')}`).join('; ');
}
