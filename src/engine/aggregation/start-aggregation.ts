/**
 * Follows the APIServices in the store: those that name a service make their group and version be served by it, as soon
 * as they are durable. Their Available condition is the controller's (controllers/api-service.ts).
 */
import type { Aggregation } from '#engine/aggregation/aggregation.ts';
import { checkAvailability } from '#engine/aggregation/availability.ts';
import { API_SERVICE_COLLECTION, readRemoteApi, routeKey, type RemoteApi } from '#engine/aggregation/remote-api.ts';
import { RemoteDiscovery, type Served } from '#engine/aggregation/remote-discovery.ts';
import { RemoteService, UNAVAILABLE, type RemoteServiceParts } from '#engine/aggregation/remote-service.ts';
import type { ApiHandler } from '#engine/request.ts';
import type { Entry } from '#engine/store/store.ts';
import type { Log } from '#lib/log.ts';

export interface AggregationParts extends RemoteServiceParts {
  readonly log: Log;
  /** Never handed to others. */
  readonly ownGroups: ReadonlySet<string>;
}

export interface RunningAggregation extends Aggregation {
  /** Resolves when no document of a service behind us is being fetched. */
  settled(): Promise<void>;
  stop(): void;
}

/** Right as soon as this returns, but for the documents, which come later. */
export function startAggregation(parts: AggregationParts): RunningAggregation {
  const { store, clock, log, ownGroups } = parts;
  const discovery = new RemoteDiscovery({ clock, log });
  const read = new WeakMap<Entry, RemoteApi | undefined>();
  const services = new Map<string, RemoteService>();
  /** By group, then by version: it is asked for each request. */
  let handlers = new Map<string, Map<string, ApiHandler>>();
  let byName = new Map<string, Served>();

  function apiOf(entry: Entry): RemoteApi | undefined {
    if (!read.has(entry)) read.set(entry, readOrReport(entry, ownGroups, log));
    return read.get(entry);
  }

  function serviceOf(api: RemoteApi): RemoteService {
    const key = routeKey(api);
    let service = services.get(key);
    if (service === undefined) services.set(key, (service = new RemoteService(api, parts)));
    return service;
  }

  function refresh(): void {
    const apis = store.list(API_SERVICE_COLLECTION).entries.flatMap((entry) => apiOf(entry) ?? []);
    const served = apis.map((api) => ({ api, service: serviceOf(api) }));
    byName = new Map(served.map((one) => [one.api.name, one]));
    handlers = new Map();
    for (const { api, service } of served) {
      const versions = handlers.get(api.group) ?? new Map<string, ApiHandler>();
      handlers.set(api.group, versions.set(api.version, handlerOf(api, service)));
    }
    const used = new Set(apis.map(routeKey));
    for (const [key, service] of services) {
      if (used.has(key)) continue;
      services.delete(key);
      service.retire();
    }
    discovery.replace(served);
  }

  const stopWatch = store.watch({ collection: API_SERVICE_COLLECTION, since: store.revision }, refresh);
  refresh();
  return {
    find: (group, version) => (handlers.size === 0 ? undefined : handlers.get(group)?.get(version)),
    get generation() {
      return discovery.generation;
    },
    get versions() {
      return discovery.versions;
    },
    async check(name, { signal }) {
      const found = byName.get(name);
      return found && checkAvailability(found.api, found.service, { clock, signal });
    },
    settled: () => discovery.settled(),
    stop() {
      stopWatch();
      discovery.stop();
      for (const service of services.values()) service.close();
    },
  };
}

/** One that is known not to answer is not asked: each request would wait for it. */
function handlerOf({ unavailable }: RemoteApi, service: RemoteService): ApiHandler {
  return (request) => (unavailable && service.place() !== 'local' ? UNAVAILABLE() : service.ask(request));
}

/** One that turns out to be impossible takes itself out of service, not the others. */
function readOrReport(entry: Entry, ownGroups: ReadonlySet<string>, log: Log): RemoteApi | undefined {
  try {
    return readRemoteApi(entry.bytes, ownGroups);
  } catch (error) {
    log.error({ err: error, apiService: entry.id }, 'Cannot read an APIService');
    return undefined;
  }
}
