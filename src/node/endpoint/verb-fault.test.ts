import assert from 'node:assert/strict';
import { test } from 'node:test';
import { verbFault } from '#node/endpoint/serve-verb.ts';
import { GuestAgentError } from '#node/hypervisor/guest-lines.ts';
import { HypervisorError } from '#node/hypervisor/hypervisor.ts';

const cases: Record<string, { error: Error; code: number; message: RegExp }> = {
  'what may be better later is a fault of ours': {
    error: new HypervisorError('QEMU is busy'),
    code: 500,
    message: /QEMU is busy/,
  },
  'what will not is a state that people can change': {
    error: new HypervisorError('it has no interface; give it one', { permanent: true }),
    code: 409,
    message: /"vm".*it has no interface; give it one/,
  },
  'nobody listens on the line to the agent': {
    error: new GuestAgentError('NotConnected', 'hung up'),
    code: 409,
    message: /VMI does not have guest agent connected/,
  },
  'an agent that says no': { error: new GuestAgentError('Refused', 'no'), code: 500, message: /Cannot do "vm": no/ },
};
for (const [name, { error, code, message }] of Object.entries(cases)) {
  test(name, () => {
    const told = verbFault('do', 'vm', error);
    assert.equal(told.code, code);
    assert.match(told.message, message);
  });
}
