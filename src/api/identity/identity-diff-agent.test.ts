/** Tests the predicted changes of the guest agent channel. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { identityDiff } from '#api/identity/identity-diff.ts';
import { configurationOf } from '#api/kubevirt/configuration.ts';
import type { LearnedDevice } from '#api/devices/learned-device.ts';
import { aRecord, aSpec, aVm, pci, testDiffs, rows, type Case } from '#api/testing/diff-cases.ts';

const REQUESTED = 'the template asks for the guest agent, by a probe or an annotation';
const PORT = 'agent0: not present -> port org.qemu.guest_agent.0';
const serialRow: LearnedDevice = {
  ...{ id: 'virtio-serial0', type: 'controller', device: 'virtio-serial', address: pci('0x00', '0x07') },
};
const channelRow: LearnedDevice = {
  ...{ id: 'agent0', type: 'channel', device: 'unix', specParams: { name: 'org.qemu.guest_agent.0' } },
};

const cases: Record<string, Case> = {
  'the channel that a probe asks for, with its controller': {
    spec: { ...aSpec(), readinessProbe: { guestAgentPing: {} } },
    want: [
      `virtio-serial0: not present -> virtio-serial, address assigned at the start (${REQUESTED})`,
      `${PORT} (${REQUESTED})`,
    ],
  },
  'only the port if the controller exists': {
    spec: { ...aSpec(), livenessProbe: { exec: { command: ['true'] } } },
    record: aRecord({ devices: [...rows, serialRow] }),
    want: [`${PORT} (${REQUESTED})`],
  },
  'no port if the spec does not ask for it, although the controller exists': {
    record: aRecord({ devices: [...rows, serialRow] }),
    want: [],
  },
  'nothing for an existing channel': {
    spec: { ...aSpec(), readinessProbe: { guestAgentPing: {} } },
    record: aRecord({ devices: [...rows, serialRow, channelRow] }),
    want: [],
  },
  'the port that an imported VM gets at its first start': {
    record: aRecord({ devices: [...rows, serialRow], learnedAt: undefined }),
    want: [`${PORT} (an imported VM that has the controller gets the port at its first start here)`],
  },
};

testDiffs(cases);

test('an annotation of the template asks for the guest agent', () => {
  const vm = aVm(aSpec());
  const template = { ...vm.spec.template, metadata: { annotations: { 'selfsame.io/guest-agent': 'true' } } };
  const annotated = { ...vm, spec: { ...vm.spec, template } };
  const found = identityDiff({ vm: annotated, record: aRecord(), configuration: configurationOf(undefined) });
  assert.deepEqual(
    found.map(({ what }) => what),
    ['virtio-serial0', 'agent0'],
  );
});
