import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { LearnedDevice } from '#api/devices/learned-device.ts';
import { pciAddressFromMap, pciAddressToMap, parsePciAddress, formatPciAddress } from '#api/devices/pci-address.ts';
import type { VmiSpec } from '#api/virtual-machine-instance/spec.ts';
import { deepEqual } from '#kube/deep.ts';
import { defineDomain } from '#node/definition/define-domain.ts';
import { anInput, aVmi } from '#node/definition/testing/a-vmi.ts';

const row = (id: string, type: string, device: string, address?: string): LearnedDevice => ({
  id,
  type,
  device,
  ...(address !== undefined && { address: pciAddressToMap(parsePciAddress(address)!) }),
});
const balloon = row('balloon0', 'balloon', 'memballoon', '0000:00:08.0');
const controller = row('line7', 'controller', 'virtio-serial', '0000:00:0d.0');

const port = (number: string): LearnedDevice => ({
  ...{ id: 'agent0', type: 'channel', device: 'unix', specParams: { name: 'org.qemu.guest_agent.0' } },
  address: { type: 'virtio-serial', controller: '7', bus: '0', port: number },
});

interface Case {
  readonly known: readonly LearnedDevice[];
  readonly spec?: Partial<VmiSpec>;
  readonly annotation?: string;
  readonly machine?: string;
  /** True if the VM has not run here yet. */
  readonly imported?: boolean;
  /** The controller, its address, and the port if it is not 1; undefined if there is no channel. */
  readonly want: string | undefined;
}

const cases: Record<string, Case> = {
  'adds the channel at its reserved place on the first start': {
    known: [],
    want: 'virtio-serial0 0000:00:07.0',
  },
  'does not add a channel to a VM that was recorded without one': { known: [balloon], want: undefined },
  'adds the channel if the annotation asks for it': {
    known: [balloon],
    annotation: 'true',
    want: 'virtio-serial0 0000:00:07.0',
  },
  'ignores an annotation other than true': { known: [balloon], annotation: 'yes', want: undefined },
  'adds the channel for a probe by the agent': {
    known: [balloon],
    spec: { readinessProbe: { guestAgentPing: {} } },
    want: 'virtio-serial0 0000:00:07.0',
  },
  'adds the channel for a probe that runs a program in the guest': {
    known: [balloon],
    spec: { livenessProbe: { exec: { command: ['true'] } } },
    want: 'virtio-serial0 0000:00:07.0',
  },
  'does not add the channel for a probe over the network': {
    known: [balloon],
    spec: { readinessProbe: { tcpSocket: { port: 22 } } },
    want: undefined,
  },
  'uses the controller of an imported VM, with its id and address': {
    known: [balloon, controller],
    imported: true,
    want: 'line7 0000:00:0d.0',
  },
  'does not add a port to a VM that ran here with the controller only': {
    known: [balloon, controller],
    want: undefined,
  },
  'adds a port to the recorded controller if the annotation asks for it': {
    known: [balloon, controller],
    annotation: 'true',
    want: 'line7 0000:00:0d.0',
  },
  'keeps a recorded port': { known: [balloon, controller, port('1')], want: 'line7 0000:00:0d.0' },
  'keeps the port number of an imported VM': {
    known: [balloon, controller, { ...port('2'), id: 'channel1' }],
    imported: true,
    want: 'line7 0000:00:0d.0 port 2',
  },
  'ignores a port number that no controller has': {
    known: [balloon, controller, { ...port('31'), id: 'channel1' }],
    imported: true,
    want: 'line7 0000:00:0d.0',
  },
  'uses another place if a recorded device has the reserved one': {
    known: [row('balloon0', 'balloon', 'memballoon', '0000:00:07.0')],
    annotation: 'true',
    want: 'virtio-serial0 0000:00:0c.0',
  },
  'uses a slot on i440fx that no recorded device had': {
    machine: 'pc',
    known: [row('balloon0', 'balloon', 'memballoon', '0000:00:05.0'), row('gone', 'disk', 'disk', '0000:00:03.0')],
    annotation: 'true',
    want: 'virtio-serial0 0000:00:04.0',
  },
};
for (const [name, { known, spec = {}, annotation, machine, imported = false, want }] of Object.entries(cases)) {
  test(name, () => {
    const off = { autoattachPodInterface: false };
    const bare = aVmi({ devices: off, ...(machine !== undefined && { machine: { type: machine } }) }, spec);
    const annotations: Record<string, string> =
      annotation === undefined ? {} : { 'selfsame.io/guest-agent': annotation };
    const vmi = { ...bare, metadata: { ...bare.metadata, annotations } };
    const { definition, problems } = defineDomain(anInput(vmi, { known: { devices: known, imported } }));
    assert.deepEqual(problems, undefined);
    const channel = definition?.devices.find(({ type }) => type === 'agent-channel');
    const place = definition?.devices.find(({ id }) => channel?.type === 'agent-channel' && id === channel.controller);
    const at = place?.address && pciAddressFromMap(place.address);
    const number = channel?.address?.['port'] ?? '';
    const found = `${place?.id} ${at && formatPciAddress(at)}${number === '1' ? '' : ` port ${number}`}`;
    assert.equal(channel && found, want);
    const moved = known.filter(({ id, address }) =>
      definition?.devices.some(
        (device) => device.id === id && address !== undefined && !deepEqual(device.address, address),
      ),
    );
    assert.deepEqual(moved, []);
  });
}
