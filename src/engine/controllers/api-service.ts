/**
 * APIServices: reports whether aggregated API servers respond (condition Available), and maintains the APIServices of the
 * groups and versions that the engine itself serves, so that `kubectl get apiservices` shows all of them.
 *
 *   names a service ──► checked at once, when it or its Service changes, and every 30 s ──► Available
 *   served here     ──► created if missing, corrected, deleted with its definition
 *
 * aggregation/ forwards the requests.
 */
import type { Aggregation, Availability } from '#engine/aggregation/aggregation.ts';
import type { EngineController } from '#engine/controllers/engine-controller.ts';
import { ENGINE_CRDS } from '#engine/controllers/kinds.ts';
import {
  CUSTOM_GROUP_PRIORITY,
  CUSTOM_VERSION_PRIORITY,
  groupPriorityOf,
  versionPriorityOf,
} from '#engine/discovery/priorities.ts';
import type { Crd } from '#engine/registry/crd/definition.ts';
import type { Resource } from '#engine/registry/resource.ts';
import { setCondition, type Condition } from '#kube/conditions.ts';
import { deepEqual } from '#kube/deep.ts';
import { type KubeObject, type Stored, resourceAs } from '#kube/meta.ts';
import { timestamp } from '#lib/clock.ts';
import { defineController, source, startController } from '#runtime/controller.ts';
import { noEvents } from '#runtime/events.ts';
import { EMPTY_PLAN, type Plan } from '#runtime/plan.ts';
import { API_SERVICES, SERVICES } from '#kube/cluster-kinds.ts';

const REGISTRATION = 'apiregistration.k8s.io';

interface ApiServiceSpec {
  group?: string;
  version?: string;
  groupPriorityMinimum: number;
  versionPriority: number;
  service?: { namespace?: string; name?: string; port?: number };
  caBundle?: string;
  insecureSkipTLSVerify?: boolean;
}

export interface ApiService extends KubeObject {
  spec: ApiServiceSpec;
  status?: { conditions?: Condition[] };
}

const ENGINE_API_SERVICES = resourceAs<ApiService>(API_SERVICES);

const CHECK_INTERVAL_MS = 30_000;
/** Shorter, because a server that does not respond may be starting. */
const FAILED_CHECK_INTERVAL_MS = 2000;
const CONCURRENT_CHECKS = 4;

interface AvailabilityWorld {
  readonly apiService: Stored<ApiService>;
  readonly found: Availability;
  readonly now: string;
}

/** Computes the condition Available of one APIService. Pure. */
export function decideAvailability({ apiService, found, now }: AvailabilityWorld): Plan {
  const conditions = setCondition(apiService.status?.conditions, { type: 'Available', ...found }, now);
  const requeueAfterMs = found.status === 'True' ? CHECK_INTERVAL_MS : FAILED_CHECK_INTERVAL_MS;
  return { changes: [], status: { ...apiService.status, conditions }, requeueAfterMs };
}

/** A label of Kubernetes: the engine manages the APIService, since its start or as long as its definition exists. */
const AUTOMANAGED = 'kube-aggregator.kubernetes.io/automanaged';
type ManagementMode = 'onstart' | 'true';

export interface RegistrationWorld {
  readonly name: string;
  /** undefined = the engine does not serve it. */
  readonly wanted: { readonly spec: ApiServiceSpec; readonly mode: ManagementMode } | undefined;
  readonly present: Stored<ApiService> | undefined;
}

/** Decides the next step for one APIService of the engine. APIServices without the label are left alone. Pure. */
export function decideRegistration({ name, wanted, present }: RegistrationWorld): Plan {
  if (present === undefined) {
    if (wanted === undefined) return EMPTY_PLAN;
    const metadata = { name, labels: { [AUTOMANAGED]: wanted.mode } };
    const object = { apiVersion: `${REGISTRATION}/v1`, kind: 'APIService', metadata, spec: wanted.spec };
    return {
      changes: [{ do: 'create', type: ENGINE_API_SERVICES, object, why: 'this group and version is served here' }],
    };
  }
  const { metadata, spec } = present;
  if (metadata.labels?.[AUTOMANAGED] === undefined || metadata.deletionTimestamp !== undefined) return EMPTY_PLAN;
  if (wanted === undefined) {
    const why = 'this group and version is no longer served here';
    return { changes: [{ do: 'delete', type: ENGINE_API_SERVICES, name: { name }, uid: metadata.uid, why }] };
  }
  const labels = { [AUTOMANAGED]: wanted.mode };
  if (deepEqual(spec, wanted.spec) && metadata.labels[AUTOMANAGED] === wanted.mode) return EMPTY_PLAN;
  const body = { metadata: { labels }, spec: { ...clearFields(spec), ...wanted.spec } };
  const why = 'its spec differs from what is served here';
  const patch = { type: 'merge', body } as const;
  return { changes: [{ do: 'patch', type: ENGINE_API_SERVICES, name: { name }, uid: metadata.uid, patch, why }] };
}

const clearFields = (spec: object) => Object.fromEntries(Object.keys(spec).map((field) => [field, null]));

/** Returns the specs for the built-in groups and versions, by APIService name. The group of APIService itself has none. */
function builtInRegistrations(resources: readonly Resource[]): Map<string, ApiServiceSpec> {
  const specs = new Map<string, ApiServiceSpec>();
  for (const { group, version, builtIn } of resources) {
    if (!builtIn || group === REGISTRATION) continue;
    specs.set(apiServiceName(group, version), {
      ...(group === '' ? {} : { group }),
      version,
      groupPriorityMinimum: groupPriorityOf({ group, builtIn }),
      versionPriority: versionPriorityOf({ group, builtIn }),
    });
  }
  return specs;
}

function customSpec(name: string, definitions: readonly Stored<Crd>[]): ApiServiceSpec | undefined {
  for (const { spec } of definitions) {
    const version = spec.versions.find((one) => one.served && apiServiceName(spec.group, one.name) === name);
    if (version === undefined) continue;
    const priorities = { groupPriorityMinimum: CUSTOM_GROUP_PRIORITY, versionPriority: CUSTOM_VERSION_PRIORITY };
    return { group: spec.group, version: version.name, ...priorities };
  }
  return undefined;
}

const apiServiceName = (group: string, version: string) => `${version}.${group}`;
const apiServiceNames = ({ spec }: Crd) => spec.versions.map(({ name }) => apiServiceName(spec.group, name));

/** `aggregation` checks the server behind an APIService. */
export function apiServiceController({ aggregation }: { readonly aggregation: Aggregation }): EngineController {
  return {
    account: 'apiservice-controller',
    start(parts) {
      const { clock, registry } = parts;
      const runtime = { ...parts, events: noEvents };
      const apiServices = parts.informer(ENGINE_API_SERVICES);
      const services = parts.informer(SERVICES);
      const definitions = parts.informer(ENGINE_CRDS);
      const builtIns = builtInRegistrations(registry.resources);

      const availability = defineController<AvailabilityWorld>({
        name: 'apiservice-availability',
        type: ENGINE_API_SERVICES,
        sources: [
          source(apiServices),
          source(services, ({ metadata }) =>
            apiServices
              .list()
              .filter(
                ({ spec }) => spec.service?.name === metadata.name && spec.service.namespace === metadata.namespace,
              )
              .map((apiService) => apiService.metadata.name),
          ),
        ],
        async observe(name, { signal }) {
          const apiService = apiServices.get(name);
          if (apiService?.spec.service === undefined) return undefined;
          const found = await aggregation.check(name, { signal });
          return found && { apiService, found, now: timestamp(clock.now()) };
        },
        decide: decideAvailability,
        subject: ({ apiService }) => apiService,
        concurrency: CONCURRENT_CHECKS,
      });

      const registration = defineController<RegistrationWorld>({
        name: 'apiservice-registration',
        type: ENGINE_API_SERVICES,
        sources: [source(apiServices), source(definitions, apiServiceNames)],
        observe(name) {
          const builtIn = builtIns.get(name);
          const spec = builtIn ?? customSpec(name, definitions.list());
          const wanted = spec && { spec, mode: builtIn === undefined ? ('true' as const) : ('onstart' as const) };
          return { name, wanted, present: apiServices.get(name) };
        },
        decide: decideRegistration,
        subject: () => undefined,
      });
      const running = startController(registration, runtime);
      // A missing APIService causes no watch event, so all are enqueued once. synced() rejects if the engine stops first.
      apiServices.waitForSync().then(
        () => [...builtIns.keys()].forEach((name) => running.enqueue(name)),
        () => {},
      );
      return [startController(availability, runtime), running];
    },
  };
}
