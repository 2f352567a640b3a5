/** The lines to a guest's agent and to its ports; nobody is at the other end of them here. */
import assert from 'node:assert/strict';
import { GuestAgentError, type AgentFault } from '../guest-lines.ts';
import { HypervisorError } from '../hypervisor.ts';
import { started, type Cases } from './scene.ts';

const PING = { execute: 'guest-ping' };
const FREEZE = { timeoutMs: 60_000, why: 'asked' as const };

const isFault = (fault: AgentFault) => (error: unknown) => error instanceof GuestAgentError && error.fault === fault;

export const lineCases: Cases = {
  'tells that nobody listens at the other end': async (scene) => {
    const id = await started(scene);
    await assert.rejects(scene.hypervisor.askAgent(id, PING), isFault('NotConnected'));
    assert.notEqual(scene.hypervisor.get(id)?.agent, 'connected');
  },

  'tells a guest that has no line from one whose agent is silent': async (scene) => {
    const { devices } = scene.definition();
    const without = scene.definition({ devices: devices.filter(({ type }) => type !== 'agent-channel') });
    await scene.hypervisor.create(without);
    await assert.rejects(scene.hypervisor.askAgent(without.id, PING), isFault('NoChannel'));
    assert.equal(scene.hypervisor.get(without.id)?.agent, undefined);
  },

  'freezes nothing without an agent, and leaves nothing frozen': async (scene) => {
    const id = await started(scene);
    await assert.rejects(scene.hypervisor.freeze(id, FREEZE), isFault('NotConnected'));
    assert.equal(scene.hypervisor.get(id)?.frozenUntilMs, undefined);
    await scene.hypervisor.thaw(id);
  },

  'opens no port where nobody accepts': async (scene) => {
    const id = await started(scene);
    const port = { port: 8080, protocol: 'tcp' as const };
    await assert.rejects(scene.hypervisor.openPort(id, port, { timeoutMs: 200 }), HypervisorError);
  },

  'reaches nothing of a guest that has ended': async (scene) => {
    const id = await started(scene);
    await scene.hypervisor.destroy(id);
    const port = { port: 22, protocol: 'tcp' as const };
    await assert.rejects(scene.hypervisor.openPort(id, port), HypervisorError);
    await assert.rejects(scene.hypervisor.askAgent(id, PING), HypervisorError);
    await assert.rejects(scene.hypervisor.freeze(id, FREEZE), HypervisorError);
    await assert.rejects(scene.hypervisor.openPort('nobody', port), HypervisorError);
  },
};
