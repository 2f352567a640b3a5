/** Predicts which parts of the guest agent channel a guest will get at its next start (ADR 15). Pure. */
import { AGENT_PORT_NAME, asksForAgent } from '#api/devices/agent-channel.ts';
import type { Difference } from '#api/identity/identity-diff.ts';
import type { LastSeen } from '#api/identity/identity-last-seen.ts';
import type { LearnedDevice } from '#api/devices/learned-device.ts';

const ABSENT = 'not present';
const REQUESTED = 'the template asks for the guest agent, by a probe or an annotation';
const IMPORTED = 'an imported VM that has the controller gets the port at its first start here';

/** `next` is the template from which the next instance is created. */
export function agentDifferences(
  next: Parameters<typeof asksForAgent>[0],
  { devices, isImported }: Pick<LastSeen, 'devices' | 'isImported'>,
): Difference[] {
  // Nothing can differ before the devices were read; a guest that starts for the first time has the whole channel.
  if (devices === undefined || devices.size === 0) return [];
  const rows = [...devices.values()].filter(({ plugged }) => plugged !== false);
  const hasController = rows.some(({ type, device }) => type === 'controller' && device === 'virtio-serial');
  const isRequested = asksForAgent(next);
  if ((!isRequested && !(isImported && hasController)) || (hasController && rows.some(isAgentPort))) return [];
  const why = isRequested ? REQUESTED : IMPORTED;
  const port = { what: 'agent0', from: ABSENT, to: `port ${AGENT_PORT_NAME}`, why };
  if (hasController) return [port];
  return [{ what: 'virtio-serial0', from: ABSENT, to: 'virtio-serial, address assigned at the start', why }, port];
}

function isAgentPort({ type, specParams }: LearnedDevice): boolean {
  return type === 'channel' && specParams?.['name'] === AGENT_PORT_NAME;
}
