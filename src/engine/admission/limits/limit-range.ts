/**
 * Enforces LimitRanges: sets default requests and limits of containers, then checks minimum, maximum and ratio of
 * containers, pods and claims, with the messages of Kubernetes.
 */
import type { AdmissionAttributes, MutatingStep, ValidatingStep } from '#engine/admission/admission.ts';
import { refuse } from '#engine/admission/admission.ts';
import { type Amounts, amountsOf, podAmounts } from '#engine/registry/kinds/pod-spec/pod-amounts.ts';
import type { LimitRangeItem } from '#engine/registry/kinds/core/limit-range.ts';
import type { EnginePodSpec } from '#engine/registry/kinds/pod-spec/pod-spec.ts';
import { records } from '#engine/registry/kinds/shared/reading.ts';
import { peekObject } from '#engine/registry/stored-entries.ts';
import type { Store } from '#engine/store/store.ts';
import { isRecord, type KubeObject } from '#kube/meta.ts';
import { compareQuantities, formatQuantity, type Quantity, quantityToNumber } from '#kube/quantity.ts';

const COLLECTION = 'limitranges';
const ANNOTATION = 'kubernetes.io/limit-ranger';

interface LimitRange extends KubeObject {
  spec?: { limits?: LimitRangeItem[] };
}

type Container = NonNullable<EnginePodSpec['containers']>[number];

/** Sets the defaults of new pods. */
export function limitRangeDefaults(store: Store): MutatingStep {
  return (attributes) => {
    if (!isNewPod(attributes)) return;
    const pod = attributes.object!;
    for (const items of limitsOf(store, attributes.namespace)) setPodDefaults(pod, items);
  };
}

/** Checks new pods, and claims. */
export function limitRangeValidation(store: Store): ValidatingStep {
  return (attributes) => {
    const { operation, resource, subresource, object, oldObject } = attributes;
    if (subresource !== '' || (operation !== 'CREATE' && operation !== 'UPDATE')) return;
    const isClaim = resource.collection === 'persistentvolumeclaims';
    if (!isClaim && !isNewPod(attributes)) return;
    if (oldObject?.metadata.deletionTimestamp !== undefined) return;
    for (const items of limitsOf(store, attributes.namespace)) {
      const errors = isClaim ? claimErrors(object!, items) : podErrors(object!, items);
      if (errors.length > 0) throw refuse(attributes, joinErrors(errors));
    }
  };
}

function isNewPod({ operation, resource, subresource, object }: AdmissionAttributes): boolean {
  if (operation !== 'CREATE' || resource.collection !== 'pods' || subresource !== '') return false;
  return isRecord(object?.['spec']);
}

function limitsOf(store: Store, namespace: string): readonly (readonly LimitRangeItem[])[] {
  const { entries } = store.list(COLLECTION, { prefix: `${namespace}/` });
  if (entries.length === 0) return [];
  return entries.map((entry) => (peekObject(entry) as LimitRange).spec?.limits ?? []);
}

function setPodDefaults(pod: KubeObject, items: readonly LimitRangeItem[]): void {
  const spec = pod['spec'] as EnginePodSpec;
  const ofContainers = items.filter(({ type }) => type === 'Container');
  if (ofContainers.length === 0) return;
  const limits = Object.assign({}, ...ofContainers.map((item) => item.default)) as Quantities;
  const requests = Object.assign({}, ...ofContainers.map((item) => item.defaultRequest)) as Quantities;
  const notes = [
    ...records(spec.containers).flatMap((container) => setDefaults(container, 'container', requests, limits)),
    ...records(spec.initContainers).flatMap((container) => setDefaults(container, 'init container', requests, limits)),
  ];
  if (notes.length === 0) return;
  const text = `LimitRanger plugin set: ${notes.join('; ')}`;
  pod.metadata.annotations = { ...pod.metadata.annotations, [ANNOTATION]: text };
}

type Quantities = Record<string, string | number>;

/** Returns what was set, in Kubernetes' words. */
function setDefaults(container: Container, word: string, requests: Quantities, limits: Quantities): string[] {
  const own = (container.resources ??= {});
  const ownLimits = (own.limits ??= {}) as Quantities;
  const ownRequests = (own.requests ??= {}) as Quantities;
  const add = (to: Quantities, from: Quantities): string => {
    const names = Object.keys(from).filter((name) => !Object.hasOwn(to, name));
    for (const name of names) to[name] = from[name]!;
    return names.sort().join(', ');
  };
  const limited = add(ownLimits, limits);
  const requested = add(ownRequests, requests);
  if (Object.keys(ownLimits).length === 0) delete own.limits;
  if (Object.keys(ownRequests).length === 0) delete own.requests;
  return [
    ...(requested === '' ? [] : [`${requested} request for ${word} ${container.name}`]),
    ...(limited === '' ? [] : [`${limited} limit for ${word} ${container.name}`]),
  ];
}

function claimErrors(claim: KubeObject, items: readonly LimitRangeItem[]): string[] {
  const spec = isRecord(claim['spec']) ? claim['spec'] : {};
  const resources = isRecord(spec['resources']) ? spec['resources'] : {};
  const requests = amountsOf(resources['requests'] as Quantities | undefined);
  return items
    .filter(({ type }) => type === 'PersistentVolumeClaim')
    .flatMap((item) => [
      ...eachAmount(item.min, (name, min) => minError(item.type, name, min, { requests, limits: NOTHING })),
      ...eachAmount(item.max, (name, max) => maxRequestError(item.type, name, max, requests)),
    ]);
}

const NOTHING: Amounts = new Map();

interface Asked {
  readonly requests: Amounts;
  readonly limits: Amounts;
}

function podErrors(pod: KubeObject, items: readonly LimitRangeItem[]): string[] {
  const spec = pod['spec'] as EnginePodSpec;
  return items.flatMap((item) => {
    if (item.type === 'Pod') {
      return askedErrors(item, { requests: podAmounts(spec, 'requests'), limits: podAmounts(spec, 'limits') });
    }
    if (item.type !== 'Container') return [];
    return [...records(spec.containers), ...records(spec.initContainers)].flatMap(({ resources }) =>
      askedErrors(item, { requests: amountsOf(resources?.requests), limits: amountsOf(resources?.limits) }),
    );
  });
}

function askedErrors(item: LimitRangeItem, asked: Asked): string[] {
  return [
    ...eachAmount(item.min, (name, min) => minError(item.type, name, min, asked)),
    ...eachAmount(item.max, (name, max) => maxError(item.type, name, max, asked)),
    ...eachAmount(item.maxLimitRequestRatio, (name, ratio) => ratioError(item.type, name, ratio, asked)),
  ];
}

function eachAmount(
  amounts: Quantities | undefined,
  check: (name: string, amount: Quantity) => string | undefined,
): string[] {
  return [...amountsOf(amounts)].flatMap(([name, amount]) => check(name, amount) ?? []);
}

function minError(type: string, name: string, min: Quantity, { requests, limits }: Asked): string | undefined {
  const text = `minimum ${name} usage per ${type} is ${formatQuantity(min)}`;
  const request = requests.get(name);
  const limit = limits.get(name);
  if (request === undefined) return `${text}.  No request is specified`;
  if (compareQuantities(request, min) < 0) return `${text}, but request is ${formatQuantity(request)}`;
  if (limit === undefined || compareQuantities(limit, min) >= 0) return undefined;
  return `${text}, but limit is ${formatQuantity(limit)}`;
}

function maxRequestError(type: string, name: string, max: Quantity, requests: Amounts): string | undefined {
  const text = `maximum ${name} usage per ${type} is ${formatQuantity(max)}`;
  const request = requests.get(name);
  if (request === undefined) return `${text}.  No request is specified`;
  return compareQuantities(request, max) > 0 ? `${text}, but request is ${formatQuantity(request)}` : undefined;
}

function maxError(type: string, name: string, max: Quantity, { requests, limits }: Asked): string | undefined {
  const text = `maximum ${name} usage per ${type} is ${formatQuantity(max)}`;
  const request = requests.get(name);
  const limit = limits.get(name);
  if (limit === undefined) return `${text}.  No limit is specified`;
  if (compareQuantities(limit, max) > 0) return `${text}, but limit is ${formatQuantity(limit)}`;
  if (request === undefined || compareQuantities(request, max) <= 0) return undefined;
  return `${text}, but request is ${formatQuantity(request)}`;
}

function ratioError(type: string, name: string, ratio: Quantity, { requests, limits }: Asked): string | undefined {
  const text = `${name} max limit to request ratio per ${type} is ${formatQuantity(ratio)}`;
  const request = requests.get(name)?.nanos ?? 0n;
  const limit = limits.get(name)?.nanos ?? 0n;
  if (request === 0n) return `${text}, but no request is specified or request is 0`;
  if (limit === 0n) return `${text}, but no limit is specified or limit is 0`;
  const observed = Number(limit) / Number(request);
  return observed > quantityToNumber(ratio) ? `${text}, but provided ratio is ${observed.toFixed(6)}` : undefined;
}

/** Joins errors as Go does: several stand in brackets, each once. */
function joinErrors(errors: readonly string[]): string {
  const different = [...new Set(errors)];
  return different.length === 1 ? different[0]! : `[${different.join(', ')}]`;
}
