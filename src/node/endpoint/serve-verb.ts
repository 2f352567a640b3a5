/** PUT .../{pause,unpause,freeze,unfreeze,softreboot,reset}: actions of users on a running guest. */
import { DEFAULT_UNFREEZE_SECONDS } from '#api/guest-info.ts';
import { KUBEVIRT_GROUP } from '#api/names.ts';
import { conflict, internalError, notFound, type ApiError } from '#kube/api-error.ts';
import type { EndpointAgent } from '#node/endpoint/endpoint-agent.ts';
import type { EndpointRoute, GuestVerb } from '#node/endpoint/route.ts';
import { GuestAgentError } from '#node/hypervisor/guest-access.ts';
import {
  GuestPortError,
  HypervisorError,
  isDomainMoving,
  type DomainInfo,
  type DomainState,
} from '#node/hypervisor/hypervisor.ts';
import { errorMessage } from '#lib/error-message.ts';

const INSTANCES = { group: KUBEVIRT_GROUP, plural: 'virtualmachineinstance' };

type VerbRoute = Extract<EndpointRoute, { kind: 'verb' }>;

/** Throws ApiError. Does nothing if a guest to pause is paused, or one to unpause runs. */
export async function serveVerb(
  agent: EndpointAgent,
  { verb, namespace, name }: VerbRoute,
  query: URLSearchParams,
): Promise<void> {
  const domain = liveDomain(agent, namespace, name);
  const refusal = verbRefusal(verb, domain);
  if (refusal !== undefined) throw conflict(INSTANCES, name, refusal);
  if (isDone(verb, domain.current)) return;
  try {
    await VERB_HANDLERS[verb](agent, domain.id, query);
  } catch (error) {
    throw toVerbError(verb, name, error);
  }
}

const VERB_HANDLERS: Readonly<
  Record<GuestVerb, (agent: EndpointAgent, id: string, query: URLSearchParams) => Promise<void>>
> = {
  pause: (agent, id) => agent.pause(id),
  unpause: (agent, id) => agent.resume(id),
  freeze: (agent, id, query) => agent.freeze(id, parseSeconds(query)),
  unfreeze: (agent, id) => agent.unfreeze(id),
  softreboot: (agent, id) => agent.softReboot(id),
  reset: (agent, id) => agent.reset(id),
};

/** Returns the default for an invalid value; the client has validated it. */
function parseSeconds(query: URLSearchParams): number {
  const seconds = Number(query.get('seconds'));
  return Number.isSafeInteger(seconds) && seconds > 0 ? seconds : DEFAULT_UNFREEZE_SECONDS;
}

/** Returns information of the guest agent. Throws ApiError. */
export async function serveGuest(
  agent: EndpointAgent,
  { read, namespace, name }: Extract<EndpointRoute, { kind: 'guest' }>,
): Promise<object> {
  const domain = liveDomain(agent, namespace, name);
  try {
    return await agent.readGuest(domain.id, read);
  } catch (error) {
    throw toVerbError(read, name, error);
  }
}

/** Returns the domain of an instance. Throws ApiError if there is none or the guest has ended. */
export function liveDomain(agent: EndpointAgent, namespace: string, name: string): DomainInfo {
  const domain = agent.find(namespace, name);
  if (domain === undefined) throw notFound(INSTANCES, name);
  if (domain.current.state === 'ended') throw conflict(INSTANCES, name, 'VMI is not running');
  return domain;
}

function verbRefusal(verb: GuestVerb, domain: DomainInfo): string | undefined {
  if (isDomainMoving(domain)) return 'VMI is migrating';
  const { state } = domain.current;
  return verb === 'softreboot' && state === 'paused' ? 'VMI is paused' : undefined;
}

function isDisconnected({ reason }: GuestAgentError): boolean {
  return reason === 'NoChannel' || reason === 'NotConnected';
}

function isDone(verb: GuestVerb, { state }: DomainState): boolean {
  return (verb === 'pause' && state === 'paused') || (verb === 'unpause' && state === 'running');
}

/** Returns the error about a port that the guest does not serve. */
function portError(name: string, { reason, message }: GuestPortError): ApiError {
  const remedy =
    reason === 'Refused'
      ? 'start a service on that port in the guest, or wait until it has booted'
      : 'check the address of the guest and its firewall, or wait until it has booted';
  return conflict(INSTANCES, name, `${message}; ${remedy}`);
}

/** Converts an error of the agent to an ApiError. `what` completes "Cannot ... the instance". */
export function toVerbError(what: string, name: string, error: unknown): ApiError {
  const why = errorMessage(error);
  if (error instanceof GuestPortError) return portError(name, error);
  if (error instanceof HypervisorError)
    return error.permanent ? conflict(INSTANCES, name, why) : internalError(why, error);
  if (error instanceof GuestAgentError && isDisconnected(error)) {
    return conflict(INSTANCES, name, 'VMI does not have guest agent connected');
  }
  return internalError(`Cannot ${what} "${name}": ${why}`, error);
}
