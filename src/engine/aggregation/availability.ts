/** Checks whether the server of an APIService is available, for its Available condition. */
import type { Availability } from '#engine/aggregation/aggregation.ts';
import { fetchFromService, type FetchOptions } from '#engine/aggregation/fetch-from-service.ts';
import { discoveryPath, type RemoteApi } from '#engine/aggregation/remote-api.ts';
import type { RemoteService } from '#engine/aggregation/remote-service.ts';
import type { Unresolved } from '#engine/remote/service-address.ts';
import { errorMessage } from '#lib/error-message.ts';

export async function checkAvailability(
  api: RemoteApi,
  service: RemoteService,
  options: FetchOptions,
): Promise<Availability> {
  const place = service.resolveAddress();
  if (place !== 'local' && 'unresolved' in place)
    return { status: 'False', ...unresolvedReason(api, place.unresolved) };
  const path = discoveryPath(api);
  const url = place === 'local' ? path : place.url + path;
  try {
    const send = place === 'local' ? service.send : service.forward;
    const { status } = await fetchFromService((request) => send.call(service, request), path, options);
    if (status >= 200 && status <= 299) return { status: 'True', reason: 'Passed', message: 'all checks passed' };
    return failed(url, `bad status from ${url}: ${status}`);
  } catch (error) {
    options.signal.throwIfAborted();
    return failed(url, `Get "${url}": ${errorMessage(error)}`);
  }
}

function failed(url: string, why: string): Availability {
  const message = `failing or missing response from ${url}: ${why}`;
  return { status: 'False', reason: 'FailedDiscoveryCheck', message };
}

function unresolvedReason({ service }: RemoteApi, reason: Unresolved): Omit<Availability, 'status'> {
  const { namespace, name, port } = service;
  const subject = `service/${name} in ${JSON.stringify(namespace)}`;
  switch (reason) {
    case 'ServiceNotFound':
      return { reason, message: `${subject} is not present` };
    case 'ServicePortError':
      return { reason, message: `${subject} is not listening on port ${port}` };
    default:
      return { reason, message: `endpoints for ${subject} have no addresses with port name ""` };
  }
}
