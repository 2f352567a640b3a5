import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { VmiSpec } from '#api/virtual-machine-instance/spec.ts';
import { checkProbes } from '#api/validation/probes.ts';
import { aSpec } from '#api/validation/testing/valid-objects.ts';

const tcp = { tcpSocket: { port: 22 } };
const AT = 'spec.readinessProbe';

const cases: Record<string, { spec: Partial<VmiSpec>; want: string[] }> = {
  'each way to ask is fine': {
    spec: { readinessProbe: { httpGet: { port: 80, path: '/x' } }, livenessProbe: { guestAgentPing: {} } },
    want: [],
  },
  'a program of the guest': { spec: { readinessProbe: { exec: { command: ['cat', '/tmp/ok'] } } }, want: [] },
  'two at once': {
    spec: { readinessProbe: { ...tcp, guestAgentPing: {} } },
    want: [`${AT}: Invalid value: "tcpSocket, guestAgentPing": ${AT} must have exactly one probe type set`],
  },
  'none at all': {
    spec: { readinessProbe: { periodSeconds: 3 } },
    want: [
      `${AT}: Required value: either ${AT}.tcpSocket, ${AT}.exec, ${AT}.httpGet or ${AT}.guestAgentPing must be set if a ${AT} is specified`,
    ],
  },
  'a program without a name': {
    spec: { readinessProbe: { exec: { command: [] } } },
    want: [`${AT}.exec.command: Required value`],
  },
  'a port by its name': {
    spec: { readinessProbe: { tcpSocket: { port: 'ssh' } } },
    want: [`${AT}.tcpSocket.port: Invalid value: "ssh": must be between 1 and 65535, inclusive`],
  },
  'a guest on a bridge alone, which is asked at the address that its agent tells': {
    spec: { readinessProbe: tcp, networks: [{ name: 'default', multus: { networkName: 'br0' } }] },
    want: [],
  },
  'a guest without a network': {
    spec: { readinessProbe: tcp, networks: [], domain: { devices: { autoattachPodInterface: false } } },
    want: [`${AT}.tcpSocket: Forbidden: ${AT}.tcpSocket is only allowed if a network is attached`],
  },
  'another host than the guest': {
    spec: { readinessProbe: { tcpSocket: { port: 22, host: '169.254.169.254' } } },
    want: [`${AT}.tcpSocket.host: Forbidden: is not supported; probes go to the guest itself`],
  },
  'what would be another line of a request': {
    spec: {
      readinessProbe: { httpGet: { port: 80, path: '/a\nb', httpHeaders: [{ name: 'a b', value: 'c\r\nd' }] } },
    },
    want: [
      `${AT}.httpGet.path: Invalid value: "/a\\nb": must not contain control characters`,
      `${AT}.httpGet.httpHeaders[0].name: Invalid value: "a b": must be the name of an HTTP header`,
      `${AT}.httpGet.httpHeaders[0].value: Invalid value: "c\\r\\nd": must not contain control characters`,
    ],
  },
  'a life that has to be shown twice': {
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
