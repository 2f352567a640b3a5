import assert from 'node:assert/strict';
import { test } from 'node:test';
import { toVerbError } from '#node/endpoint/serve-verb.ts';
import { GuestAgentError } from '#node/hypervisor/guest-access.ts';
import { HypervisorError, portNoAnswerError, portRefusedError } from '#node/hypervisor/hypervisor.ts';

const cases: Record<string, { error: Error; code: number; message: RegExp }> = {
  'a temporary error of the hypervisor is an internal error': {
    error: new HypervisorError('QEMU is busy'),
    code: 500,
    message: /QEMU is busy/,
  },
  'a permanent error of the hypervisor is a conflict': {
    error: new HypervisorError('it has no interface; add one', { permanent: true }),
    code: 409,
    message: /"vm".*it has no interface; add one/,
  },
  'a port on which nothing listens is a conflict': {
    error: portRefusedError(22),
    code: 409,
    message: /"vm": the guest refused the connection to port 22; start a service on that port in the guest, or wait/,
  },
  'a port that does not answer is a conflict': {
    error: portNoAnswerError(22, 10_000),
    code: 409,
    message: /port 22 did not answer within 10000 ms; check the address of the guest/,
  },
  'a disconnected guest agent is a conflict': {
    error: new GuestAgentError('NotConnected', 'disconnected'),
    code: 409,
    message: /VMI does not have guest agent connected/,
  },
  'a refusal of the guest agent is an internal error': {
    error: new GuestAgentError('Refused', 'no'),
    code: 500,
    message: /Cannot do "vm": no/,
  },
};
for (const [sentence, { error, code, message }] of Object.entries(cases)) {
  test(sentence, () => {
    const apiError = toVerbError('do', 'vm', error);
    assert.equal(apiError.code, code);
    assert.match(apiError.message, message);
  });
}
