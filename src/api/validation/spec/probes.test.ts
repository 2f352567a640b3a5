import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { VmiSpec } from '#api/virtual-machine-instance/spec.ts';
import { checkProbes } from '#api/validation/spec/probes.ts';
import { aSpec } from '#api/validation/testing/valid-objects.ts';

const tcp = { tcpSocket: { port: 22 } };
const AT = 'spec.readinessProbe';

const cases: Record<string, { spec: Partial<VmiSpec>; want: string[] }> = {
  'accepts HTTP and guest agent probes': {
    spec: { readinessProbe: { httpGet: { port: 80, path: '/x' } }, livenessProbe: { guestAgentPing: {} } },
    want: [],
  },
  'accepts an exec probe': { spec: { readinessProbe: { exec: { command: ['cat', '/tmp/ok'] } } }, want: [] },
  'refuses two handlers': {
    spec: { readinessProbe: { ...tcp, guestAgentPing: {} } },
    want: [`${AT}: Invalid value: "tcpSocket, guestAgentPing": ${AT} must have exactly one probe type set`],
  },
  'refuses a probe without a handler': {
    spec: { readinessProbe: { periodSeconds: 3 } },
    want: [
      `${AT}: Required value: either ${AT}.tcpSocket, ${AT}.exec, ${AT}.httpGet or ${AT}.guestAgentPing must be set if a ${AT} is specified`,
    ],
  },
  'refuses an exec probe without a command': {
    spec: { readinessProbe: { exec: { command: [] } } },
    want: [`${AT}.exec.command: Required value`],
  },
  'refuses a named port': {
    spec: { readinessProbe: { tcpSocket: { port: 'ssh' } } },
    want: [`${AT}.tcpSocket.port: Invalid value: "ssh": must be between 1 and 65535, inclusive`],
  },
  'accepts a TCP probe of a guest on a bridge': {
    spec: { readinessProbe: tcp, networks: [{ name: 'default', multus: { networkName: 'br0' } }] },
    want: [],
  },
  'refuses a TCP probe of a guest without a network': {
    spec: { readinessProbe: tcp, networks: [], domain: { devices: { autoattachPodInterface: false } } },
    want: [`${AT}.tcpSocket: Forbidden: ${AT}.tcpSocket is only allowed if a network is attached`],
  },
  'refuses another host': {
    spec: { readinessProbe: { tcpSocket: { port: 22, host: '169.254.169.254' } } },
    want: [`${AT}.tcpSocket.host: Forbidden: is not supported; probes go to the guest itself`],
  },
  'refuses control characters in an HTTP request': {
    spec: {
      readinessProbe: { httpGet: { port: 80, path: '/a\nb', httpHeaders: [{ name: 'a b', value: 'c\r\nd' }] } },
    },
    want: [
      `${AT}.httpGet.path: Invalid value: "/a\\nb": must not contain control characters`,
      `${AT}.httpGet.httpHeaders[0].name: Invalid value: "a b": must be the name of an HTTP header`,
      `${AT}.httpGet.httpHeaders[0].value: Invalid value: "c\\r\\nd": must not contain control characters`,
    ],
  },
  'refuses a liveness probe with a success threshold of 2': {
    spec: { livenessProbe: { ...tcp, successThreshold: 2 } },
    want: ['spec.livenessProbe.successThreshold: Invalid value: 2: must be 1'],
  },
};
for (const [name, { spec, want }] of Object.entries(cases)) {
  test(name, () => {
    const errors = checkProbes({ ...aSpec(), ...spec }, 'spec');
    assert.deepEqual(
      errors.map(({ field, message }) => `${field}: ${message}`),
      want,
    );
  });
}
