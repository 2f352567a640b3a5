/**
 * Follows the APIServices in the store: those that refer to a service have their group and version served by it, as
 * soon as they are durable. The controller sets their Available condition (controllers/api-service.ts).
 */
import type { Aggregation } from '#engine/aggregation/aggregation.ts';
import { checkAvailability } from '#engine/aggregation/availability.ts';
import { API_SERVICE_COLLECTION, readRemoteApi, routeKey, type RemoteApi } from '#engine/aggregation/remote-api.ts';
import { RemoteDiscovery, type AggregatedApi } from '#engine/aggregation/remote-discovery.ts';
import { RemoteService, UNAVAILABLE, type RemoteServiceParts } from '#engine/aggregation/remote-service.ts';
import type { ApiHandler } from '#engine/request/request.ts';
import type { Entry } from '#engine/store/store.ts';
import type { Log } from '#lib/log.ts';

interface AggregationParts extends RemoteServiceParts {
  readonly log: Log;
  /** Groups that are never delegated. */
  readonly ownGroups: ReadonlySet<string>;
}

export interface RunningAggregation extends Aggregation {
  /** Resolves when no document of an aggregated API is being fetched. */
  settled(): Promise<void>;
  stop(): void;
}

/** Up to date when this returns, except for the documents, which arrive later. */
export function startAggregation(parts: AggregationParts): RunningAggregation {
  const { store, clock, log, ownGroups } = parts;
  const discovery = new RemoteDiscovery({ clock, log });
  const read = new WeakMap<Entry, RemoteApi | undefined>();
  const services = new Map<string, RemoteService>();
  /** Handlers by group, then by version, for a lookup with each request. */
  let handlers = new Map<string, Map<string, ApiHandler>>();
  let byName = new Map<string, AggregatedApi>();

  function remoteApiOf(entry: Entry): RemoteApi | undefined {
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
    const apis = store.list(API_SERVICE_COLLECTION).entries.flatMap((entry) => remoteApiOf(entry) ?? []);
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

/** A server that is known not to respond is not called: each request would wait for it. */
function handlerOf({ unavailable }: RemoteApi, service: RemoteService): ApiHandler {
  return (request) => (unavailable && service.resolveAddress() !== 'local' ? UNAVAILABLE() : service.send(request));
}

/** An invalid APIService takes only itself out of service. */
function readOrReport(entry: Entry, ownGroups: ReadonlySet<string>, log: Log): RemoteApi | undefined {
  try {
    return readRemoteApi(entry.bytes, ownGroups);
  } catch (error) {
    log.error({ err: error, apiService: entry.id }, 'Cannot read an APIService');
    return undefined;
  }
}
