import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { LearnedDevice } from '#api/learned-device.ts';
import { pciAddressFromMap, pciAddressToMap, parsePciAddress, printPciAddress } from '#api/pci-address.ts';
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
  /** It has not run here yet. */
  readonly imported?: boolean;
  /** The controller of the port and where it stands, and the number where that is not 1; undefined where there is no port. */
  readonly want: string | undefined;
}

const cases: Record<string, Case> = {
  'a VM that starts for the first time has it in the place that was kept': {
    known: [],
    want: 'virtio-serial0 0000:00:07.0',
  },
  'a VM that was recorded without does not find new hardware': { known: [balloon], want: undefined },
  'unless it asks by its annotation': {
    known: [balloon],
    annotation: 'true',
    want: 'virtio-serial0 0000:00:07.0',
  },
  'what is not true does not ask': { known: [balloon], annotation: 'yes', want: undefined },
  'a probe by the agent asks for it': {
    known: [balloon],
    spec: { readinessProbe: { guestAgentPing: {} } },
    want: 'virtio-serial0 0000:00:07.0',
  },
  'so does a program in the guest': {
    known: [balloon],
    spec: { livenessProbe: { exec: { command: ['true'] } } },
    want: 'virtio-serial0 0000:00:07.0',
  },
  'a probe over the network does not': {
    known: [balloon],
    spec: { readinessProbe: { tcpSocket: { port: 22 } } },
    want: undefined,
  },
  'a controller that another manager brought is used, under its id and where it is': {
    known: [balloon, controller],
    imported: true,
    want: 'line7 0000:00:0d.0',
  },
  'one that ran here with the controller and without the port finds no new port': {
    known: [balloon, controller],
    want: undefined,
  },
  'unless it asks': { known: [balloon, controller], annotation: 'true', want: 'line7 0000:00:0d.0' },
  'and one that had the port keeps it': { known: [balloon, controller, port('1')], want: 'line7 0000:00:0d.0' },
  'under its number, as another manager gave it': {
    known: [balloon, controller, { ...port('2'), id: 'channel1' }],
    imported: true,
    want: 'line7 0000:00:0d.0 port 2',
  },
  'a number that no controller has counts for nothing': {
    known: [balloon, controller, { ...port('31'), id: 'channel1' }],
    imported: true,
    want: 'line7 0000:00:0d.0',
  },
  'where a recorded device has the place, it goes to another and moves nothing': {
    known: [row('balloon0', 'balloon', 'memballoon', '0000:00:07.0')],
    annotation: 'true',
    want: 'virtio-serial0 0000:00:0c.0',
  },
  'on i440fx it takes a slot that nobody had': {
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
    const shown = `${place?.id} ${at && printPciAddress(at)}${number === '1' ? '' : ` port ${number}`}`;
    assert.equal(channel && shown, want);
    const moved = known.filter(({ id, address }) =>
      definition?.devices.some(
        (device) => device.id === id && address !== undefined && !deepEqual(device.address, address),
      ),
    );
    assert.deepEqual(moved, []);
  });
}
