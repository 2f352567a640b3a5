/** PUT .../{pause,unpause,softreboot,reset}: what people do to a running guest. */
import { DEFAULT_UNFREEZE_SECONDS } from '#api/guest-info.ts';
import { KUBEVIRT_GROUP } from '#api/names.ts';
import { conflict, internalError, notFound, type ApiError } from '#kube/api-error.ts';
import { isMoving } from '#node/domains/decide-outgoing.ts';
import type { EndpointAgent } from '#node/endpoint/endpoint-agent.ts';
import type { EndpointRoute, InstanceVerb } from '#node/endpoint/route.ts';
import { GuestAgentError } from '#node/hypervisor/guest-lines.ts';
import { HypervisorError, type Domain, type DomainState } from '#node/hypervisor/hypervisor.ts';

const INSTANCES = { group: KUBEVIRT_GROUP, plural: 'virtualmachineinstance' };

type VerbRoute = Extract<EndpointRoute, { kind: 'verb' }>;

/** Throws ApiError. A pause of what is paused, and an unpause of what runs, are done already. */
export async function serveVerb(
  agent: EndpointAgent,
  { verb, namespace, name }: VerbRoute,
  query: URLSearchParams,
): Promise<void> {
  const domain = liveDomain(agent, namespace, name);
  const refusal = refusalOf(verb, domain);
  if (refusal !== undefined) throw conflict(INSTANCES, name, refusal);
  if (isDone(verb, domain.current)) return;
  try {
    await VERBS[verb](agent, domain.id, query);
  } catch (error) {
    throw verbFault(verb, name, error);
  }
}

const VERBS: Readonly<
  Record<InstanceVerb, (agent: EndpointAgent, id: string, query: URLSearchParams) => Promise<void>>
> = {
  pause: (agent, id) => agent.pause(id),
  unpause: (agent, id) => agent.resume(id),
  freeze: (agent, id, query) => agent.freeze(id, secondsIn(query)),
  unfreeze: (agent, id) => agent.unfreeze(id),
  softreboot: (agent, id) => agent.softReboot(id),
  reset: (agent, id) => agent.reset(id),
};

/** Whoever asks has looked at it already. */
function secondsIn(query: URLSearchParams): number {
  const seconds = Number(query.get('seconds'));
  return Number.isSafeInteger(seconds) && seconds > 0 ? seconds : DEFAULT_UNFREEZE_SECONDS;
}

/** What the guest's agent says. Throws ApiError. */
export async function serveGuest(
  agent: EndpointAgent,
  { read, namespace, name }: Extract<EndpointRoute, { kind: 'guest' }>,
): Promise<object> {
  const domain = liveDomain(agent, namespace, name);
  try {
    return await agent.readGuest(domain.id, read);
  } catch (error) {
    throw verbFault(read, name, error);
  }
}

/** The domain of an instance whose guest has not ended. Throws ApiError. */
export function liveDomain(agent: EndpointAgent, namespace: string, name: string): Domain {
  const domain = agent.find(namespace, name);
  if (domain === undefined) throw notFound(INSTANCES, name);
  if (domain.current.state === 'ended') throw conflict(INSTANCES, name, 'VMI is not running');
  return domain;
}

function refusalOf(verb: InstanceVerb, domain: Domain): string | undefined {
  if (isMoving(domain, undefined)) return 'VMI is migrating';
  const { state } = domain.current;
  return verb === 'softreboot' && state === 'paused' ? 'VMI is paused' : undefined;
}

function isAbsent({ fault }: GuestAgentError): boolean {
  return fault === 'NoChannel' || fault === 'NotConnected';
}

function isDone(verb: InstanceVerb, { state }: DomainState): boolean {
  return (verb === 'pause' && state === 'paused') || (verb === 'unpause' && state === 'running');
}

/** Also for what the endpoint does beside verbs. */
export function verbFault(what: string, name: string, error: unknown): ApiError {
  const why = error instanceof Error ? error.message : String(error);
  if (error instanceof HypervisorError)
    return error.permanent ? conflict(INSTANCES, name, why) : internalError(why, error);
  if (error instanceof GuestAgentError && isAbsent(error)) {
    return conflict(INSTANCES, name, 'VMI does not have guest agent connected');
  }
  return internalError(`Cannot ${what} "${name}": ${why}`, error);
}
