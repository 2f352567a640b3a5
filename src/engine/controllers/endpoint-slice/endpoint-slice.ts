/** Keeps the EndpointSlices of Services with a selector. The slices of other Services are written by users. */
import { keyOf } from '#client/object-key.ts';
import { desiredSlices, MANAGED_BY_LABEL, MANAGER } from '#engine/controllers/endpoint-slice/desired-slices.ts';
import { ENGINE_SERVICES, ENGINE_SLICES, type EngineSlice } from '#engine/controllers/endpoint-slice/kinds.ts';
import type { EngineController } from '#engine/controllers/engine-controller.ts';
import { ENGINE_PODS, type EnginePod } from '#engine/controllers/kinds.ts';
import { LabelledPods } from '#engine/controllers/labelled-pods.ts';
import { PodSelectors } from '#engine/controllers/pod-selectors.ts';
import { SERVICE_NAME_LABEL } from '#kube/cluster-kinds.ts';
import type { Service } from '#engine/registry/kinds/core/service-schema.ts';
import { deepEqual } from '#kube/deep.ts';
import { isDeleting, type Stored } from '#kube/meta.ts';
import { type LabelRequirement, labelRequirementsOf } from '#kube/selectors/label-selector.ts';
import { defineController, source, startController } from '#runtime/controller.ts';
import { noEvents } from '#runtime/events.ts';
import { type Change, EMPTY_PLAN, MAX_CHANGES, type Plan } from '#runtime/plan.ts';

interface ServiceWorld {
  /** A Service with a selector. */
  readonly service: Stored<Service>;
  /** The pods that the selector of the Service matches. */
  readonly pods: readonly Stored<EnginePod>[];
  /** The slices of the Service that this controller wrote. */
  readonly slices: readonly Stored<EngineSlice>[];
}

const BY_SERVICE = 'service';
/** A selector of more labels selects nothing: no pod has so many, and compiling thousands would stall the server. */
const MAX_LABELS = 256;

export function decideSlices({ service, pods, slices }: ServiceWorld): Plan {
  if (isDeleting(service)) return EMPTY_PLAN;
  const wanted = desiredSlices(service, pods);
  const present = new Map(slices.map((slice) => [slice.metadata.name, slice]));
  const names = new Set(wanted.map(({ metadata }) => metadata.name));
  // New endpoints first, so that a Service never has fewer endpoints than pods in between.
  const changes = [
    ...wanted.flatMap((slice) => changeFor(slice, present.get(slice.metadata.name ?? ''))),
    ...slices.filter(({ metadata }) => !names.has(metadata.name)).map(deletion),
  ];
  return { changes: changes.slice(0, MAX_CHANGES) };
}

function changeFor(wanted: EngineSlice, present: Stored<EngineSlice> | undefined): Change[] {
  const { name = '', namespace } = wanted.metadata;
  if (present === undefined) {
    return [{ do: 'create', type: ENGINE_SLICES, object: wanted, why: 'the endpoints of the Service belong here' }];
  }
  const { endpoints, ports, metadata } = wanted;
  const { labels, ownerReferences } = metadata;
  const isSame =
    deepEqual(endpoints, present.endpoints ?? []) &&
    deepEqual(ports, present.ports ?? []) &&
    deepEqual(labels, present.metadata.labels) &&
    deepEqual(ownerReferences, present.metadata.ownerReferences);
  if (isSame) return [];
  const removed = Object.keys(present.metadata.labels ?? {}).filter((label) => labels?.[label] === undefined);
  const body = {
    metadata: { labels: { ...labels, ...Object.fromEntries(removed.map((label) => [label, null])) }, ownerReferences },
    endpoints,
    ports,
  };
  const { uid } = present.metadata;
  const why = 'the endpoints of the Service have changed';
  return [{ do: 'patch', type: ENGINE_SLICES, name: { namespace, name }, uid, patch: { type: 'merge', body }, why }];
}

function deletion({ metadata: { namespace, name, uid } }: Stored<EngineSlice>): Change {
  return {
    do: 'delete',
    type: ENGINE_SLICES,
    name: { namespace, name },
    uid,
    why: 'the slice has no endpoints any more',
  };
}

/** Returns undefined for Services whose endpoints are not ours. */
function selectorOf({ spec }: Service): readonly LabelRequirement[] | undefined {
  const selector = spec?.selector;
  if (spec?.type === 'ExternalName' || selector === undefined) return undefined;
  const labels = Object.keys(selector).length;
  return labels === 0 || labels > MAX_LABELS ? undefined : labelRequirementsOf({ matchLabels: selector });
}

/** Returns the key of the Service of a slice that this controller wrote. */
function serviceKeys({ metadata: { namespace, labels = {} } }: Stored<EngineSlice>): string[] {
  const name = labels[SERVICE_NAME_LABEL];
  return name === undefined || labels[MANAGED_BY_LABEL] !== MANAGER ? [] : [keyOf({ namespace, name })];
}

export const endpointSliceController: EngineController = {
  account: 'endpointslice-controller',
  start(parts) {
    const services = parts.informer(ENGINE_SERVICES);
    const pods = parts.informer(ENGINE_PODS);
    const slices = parts.informer(ENGINE_SLICES);
    slices.addIndex(BY_SERVICE, serviceKeys);
    const labelled = new LabelledPods((key) => pods.get(key));
    const compiled = new PodSelectors(selectorOf);
    const controller = defineController<ServiceWorld>({
      name: 'endpoint-slice',
      type: ENGINE_SERVICES,
      sources: [compiled.objectSource(services), compiled.podSource(pods, labelled), source(slices, serviceKeys)],
      observe(key) {
        // The compiled selector first: reading a Service with thousands of labels takes a millisecond.
        const selector = compiled.get(key);
        const service = selector && services.get(key);
        if (selector === undefined || service === undefined) return undefined;
        const { namespace = '' } = service.metadata;
        return {
          service,
          pods: labelled.select(namespace, selector),
          slices: slices.byIndex(BY_SERVICE, key),
        };
      },
      decide: decideSlices,
      subject: ({ service }) => service,
    });
    return startController(controller, { ...parts, events: noEvents });
  },
};
