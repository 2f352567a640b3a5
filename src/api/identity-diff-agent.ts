/** What of the line to a guest agent a guest will find new at its next start (ADR 15). Pure. */
import { AGENT_PORT_NAME, asksForAgent } from '#api/agent-channel.ts';
import type { Difference } from '#api/identity-diff.ts';
import type { LastSeen } from '#api/identity-last-seen.ts';
import type { LearnedDevice } from '#api/learned-device.ts';

const NOT_THERE = 'not there';
const ASKED = 'the template asks for the guest agent, by a probe or its annotation';
const BROUGHT = 'a VM of another manager that has the controller gets the port at its first start here';

/** By what an instance of it will be like. */
export function agentDifferences(
  next: Parameters<typeof asksForAgent>[0],
  { devices, imported }: Pick<LastSeen, 'devices' | 'imported'>,
): Difference[] {
  // Before the devices were read nobody knows; a guest that starts for the first time has all of it.
  if (devices === undefined || devices.size === 0) return [];
  const rows = [...devices.values()].filter(({ plugged }) => plugged !== false);
  const hasController = rows.some(({ type, device }) => type === 'controller' && device === 'virtio-serial');
  const isAsked = asksForAgent(next);
  if ((!isAsked && !(imported && hasController)) || (hasController && rows.some(isAgentPort))) return [];
  const why = isAsked ? ASKED : BROUGHT;
  const port = { what: 'agent0', from: NOT_THERE, to: `port ${AGENT_PORT_NAME}`, why };
  if (hasController) return [port];
  return [{ what: 'virtio-serial0', from: NOT_THERE, to: 'virtio-serial, address given at the start', why }, port];
}

function isAgentPort({ type, specParams }: LearnedDevice): boolean {
  return type === 'channel' && specParams?.['name'] === AGENT_PORT_NAME;
}
