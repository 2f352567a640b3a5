/**
 * Measures objects for quotas: how much of each resource an object uses, and the facts that scopes ask about. The names
 * of resources are those of Kubernetes: `pods`, `requests.cpu`, `gold.storageclass.storage.k8s.io/requests.storage`,
 * `count/<plural>.<group>` for any kind. Pure.
 */
import {
  type Amounts,
  amountsOf,
  ONE_OBJECT,
  podAmounts,
  NO_AMOUNT,
} from '#engine/registry/kinds/pod-spec/pod-amounts.ts';
import { podScopeFacts, claimScopeFacts, type ScopeFacts } from '#engine/admission/limits/scopes.ts';
import { isEventCollection } from '#engine/registry/kinds/core/event.ts';
import type { EnginePodSpec } from '#engine/registry/kinds/pod-spec/pod-spec.ts';
import { isRecord, type KubeObject } from '#kube/meta.ts';
import type { Quantity } from '#kube/quantity.ts';
import { classNameOf } from '#kube/storage-class-name.ts';

export interface Measured {
  readonly amounts: Amounts;
  /** The time after which only `count/pods` counts: the end of a pod's grace period. */
  readonly endsAtMs?: number;
  /** Undefined for kinds to which no scope applies. */
  readonly facts?: ScopeFacts;
}

const PODS = 'pods';
const CLAIMS = 'persistentvolumeclaims';
const SERVICES = 'services';
const COUNT_PREFIX = 'count/';
const CLASS_SUFFIX = '.storageclass.storage.k8s.io/';

const COMPUTE = ['cpu', 'memory', 'ephemeral-storage'] as const;
const POD_RESOURCES = new Set([PODS, ...COMPUTE.flatMap((name) => [name, `requests.${name}`, `limits.${name}`])]);
const CLAIM_RESOURCES = new Set([CLAIMS, 'requests.storage']);
const SERVICE_RESOURCES = new Set([SERVICES, 'services.nodeports', 'services.loadbalancers']);
/** Kinds that can be counted by their plural alone. */
const PLAIN_COUNTS = new Set(['configmaps', 'secrets', 'resourcequotas', 'replicationcontrollers']);

/** Returns the collection whose objects use a resource of a quota, or undefined if nothing does. */
export function collectionOfResource(name: string): string | undefined {
  if (name.startsWith(COUNT_PREFIX)) {
    const collection = name.slice(COUNT_PREFIX.length);
    return isEventCollection(collection) ? undefined : collection;
  }
  if (POD_RESOURCES.has(name) || /^(requests\.)?hugepages-/.test(name)) return PODS;
  const atClass = name.indexOf(CLASS_SUFFIX);
  const ofClaims = atClass < 0 ? name : name.slice(atClass + CLASS_SUFFIX.length);
  if (CLAIM_RESOURCES.has(ofClaims)) return CLAIMS;
  if (SERVICE_RESOURCES.has(name)) return SERVICES;
  if (PLAIN_COUNTS.has(name)) return name;
  // Devices, such as requests.example.com/gpu.
  return name.startsWith('requests.') && name.includes('/') ? PODS : undefined;
}

/** Returns the names under which the objects of a collection are counted without a look at them. */
export function plainCountNames(collection: string): string[] {
  const names = [`${COUNT_PREFIX}${collection}`];
  return PLAIN_COUNTS.has(collection) || collection === CLAIMS || collection === SERVICES
    ? [...names, collection]
    : names;
}

export function measureObject(collection: string, object: KubeObject): Measured {
  const amounts = new Map<string, Quantity>(plainCountNames(collection).map((name) => [name, ONE_OBJECT]));
  const spec = isRecord(object['spec']) ? object['spec'] : {};
  const status = isRecord(object['status']) ? object['status'] : {};
  switch (collection) {
    case PODS: {
      const pod = spec as EnginePodSpec;
      const isOver = status['phase'] === 'Succeeded' || status['phase'] === 'Failed';
      if (!isOver) addPodAmounts(amounts, pod);
      return { amounts, endsAtMs: endOfGrace(object), facts: podScopeFacts(pod) };
    }
    case CLAIMS:
      addClaimAmounts(amounts, object, spec, status);
      return { amounts, facts: claimScopeFacts(spec, status) };
    case SERVICES:
      addServiceAmounts(amounts, spec);
      return { amounts };
    default:
      return { amounts };
  }
}

/** Returns the amounts that count at a time. A pod whose node is lost does not count after its grace period. */
export function amountsAt({ amounts, endsAtMs }: Measured, nowMs: number): Amounts {
  if (endsAtMs === undefined || nowMs <= endsAtMs) return amounts;
  return new Map([[`${COUNT_PREFIX}${PODS}`, ONE_OBJECT]]);
}

function endOfGrace({ metadata }: KubeObject): number | undefined {
  const { deletionTimestamp, deletionGracePeriodSeconds } = metadata;
  if (deletionTimestamp === undefined || deletionGracePeriodSeconds === undefined) return undefined;
  return Date.parse(deletionTimestamp) + deletionGracePeriodSeconds * 1000;
}

function addPodAmounts(to: Map<string, Quantity>, spec: EnginePodSpec): void {
  const requests = podAmounts(spec, 'requests');
  const limits = podAmounts(spec, 'limits');
  to.set(PODS, ONE_OBJECT);
  for (const [name, amount] of computeAmounts(requests, limits)) to.set(name, amount);
}

/** Returns the amounts of requests and limits under the names that quotas use. */
export function computeAmounts(requests: Amounts, limits: Amounts): Map<string, Quantity> {
  const named = new Map<string, Quantity>();
  for (const [name, amount] of requests) {
    const isNative = !name.includes('/');
    if (isNative) named.set(name, amount);
    named.set(`requests.${name}`, amount);
  }
  for (const name of COMPUTE) {
    const limit = limits.get(name);
    if (limit !== undefined) named.set(`limits.${name}`, limit);
  }
  return named;
}

function addClaimAmounts(
  to: Map<string, Quantity>,
  claim: KubeObject,
  spec: Record<string, unknown>,
  status: Record<string, unknown>,
): void {
  const storageClass = classNameOf(claim);
  const names = (name: string) => (storageClass === '' ? [name] : [name, `${storageClass}${CLASS_SUFFIX}${name}`]);
  for (const name of names(CLAIMS)) to.set(name, ONE_OBJECT);
  const resources = isRecord(spec['resources']) ? spec['resources'] : {};
  const requested = storageOf(resources['requests']);
  if (requested === undefined) return;
  const allocated = storageOf(status['allocatedResources']) ?? NO_AMOUNT;
  const larger = allocated.nanos > requested.nanos ? allocated : requested;
  for (const name of names('requests.storage')) to.set(name, wholeBytes(larger));
}

function storageOf(quantities: unknown): Quantity | undefined {
  if (!isRecord(quantities)) return undefined;
  return amountsOf({ storage: quantities['storage'] as string }).get('storage');
}

function wholeBytes(quantity: Quantity): Quantity {
  const rest = quantity.nanos % ONE_OBJECT.nanos;
  return rest === 0n ? quantity : { nanos: quantity.nanos - rest + ONE_OBJECT.nanos, format: quantity.format };
}

function addServiceAmounts(to: Map<string, Quantity>, spec: Record<string, unknown>): void {
  const ports = Array.isArray(spec['ports']) ? (spec['ports'] as unknown[]) : [];
  const { type } = spec;
  const isBalanced = type === 'LoadBalancer';
  const chosen = ports.filter((port) => isRecord(port) && Number(port['nodePort'] ?? 0) !== 0).length;
  const allocated = isBalanced && spec['allocateLoadBalancerNodePorts'] === false ? chosen : ports.length;
  const nodePorts = type === 'NodePort' || isBalanced ? allocated : 0;
  to.set('services.nodeports', { nanos: BigInt(nodePorts) * ONE_OBJECT.nanos, format: 'DecimalSI' });
  to.set('services.loadbalancers', isBalanced ? ONE_OBJECT : NO_AMOUNT);
}
