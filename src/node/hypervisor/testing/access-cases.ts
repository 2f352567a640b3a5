/** Access to a guest's agent and ports, for guests without an agent or open ports. */
import assert from 'node:assert/strict';
import { GuestAgentError, type AgentErrorReason } from '#node/hypervisor/guest-access.ts';
import { HypervisorError } from '#node/hypervisor/hypervisor.ts';
import { startGuest, type Cases } from '#node/hypervisor/testing/scene.ts';

const PING = { execute: 'guest-ping' };
const FREEZE = { timeoutMs: 60_000, why: 'asked' as const };

const hasReason = (fault: AgentErrorReason) => (error: unknown) =>
  error instanceof GuestAgentError && error.reason === fault;

export const accessCases: Cases = {
  'reports that no agent is connected': async (scene) => {
    const id = await startGuest(scene);
    await assert.rejects(scene.hypervisor.askAgent(id, PING), hasReason('NotConnected'));
    assert.notEqual(scene.hypervisor.get(id)?.agent, 'connected');
  },

  'distinguishes a guest without a channel from one without an agent': async (scene) => {
    const { devices } = scene.definition();
    const without = scene.definition({ devices: devices.filter(({ type }) => type !== 'agent-channel') });
    await scene.hypervisor.create(without);
    await assert.rejects(scene.hypervisor.askAgent(without.id, PING), hasReason('NoChannel'));
    assert.equal(scene.hypervisor.get(without.id)?.agent, undefined);
  },

  'freezes nothing without an agent, and leaves nothing frozen': async (scene) => {
    const id = await startGuest(scene);
    await assert.rejects(scene.hypervisor.freeze(id, FREEZE), hasReason('NotConnected'));
    assert.equal(scene.hypervisor.get(id)?.frozenUntilMs, undefined);
    await scene.hypervisor.thaw(id);
  },

  'fails to open a port that does not accept': async (scene) => {
    const id = await startGuest(scene);
    const port = { port: 8080, protocol: 'tcp' as const };
    await assert.rejects(scene.hypervisor.openPort(id, port, { timeoutMs: 200 }), HypervisorError);
  },

  'refuses all access to a guest that has ended': async (scene) => {
    const id = await startGuest(scene);
    await scene.hypervisor.destroy(id);
    const port = { port: 22, protocol: 'tcp' as const };
    await assert.rejects(scene.hypervisor.openPort(id, port), HypervisorError);
    await assert.rejects(scene.hypervisor.askAgent(id, PING), HypervisorError);
    await assert.rejects(scene.hypervisor.freeze(id, FREEZE), HypervisorError);
    await assert.rejects(scene.hypervisor.openPort('missing', port), HypervisorError);
  },
};
