import assert from 'node:assert/strict';
import { test } from 'node:test';
import { configurationOf } from '#api/kubevirt/configuration.ts';
import { checkInstanceSpec } from '#api/validation/kinds/instance-rules.ts';
import type { VmiSpec } from '#api/virtual-machine-instance/spec.ts';

type Domain = VmiSpec['domain'];

const volumesOf = ({ devices }: Domain) =>
  (devices?.disks ?? []).map(({ name }) => ({ name, emptyDisk: { capacity: '1Mi' } }));

const cases: Record<string, { domain?: Domain; spec?: Partial<VmiSpec>; want?: readonly string[] }> = {
  'all valid devices together': {
    domain: {
      ioThreadsPolicy: 'auto',
      clock: { timezone: 'Europe/Vienna', timer: { hpet: { present: false }, rtc: { tickPolicy: 'catchup' } } },
      features: { hyperv: { relaxed: {} }, kvm: { hidden: true } },
      devices: {
        disks: [
          { name: 'a', dedicatedIOThread: true },
          { name: 'u', disk: { bus: 'usb' } },
        ],
        inputs: [{ name: 'pen', type: 'tablet' }],
        sound: { name: 's', model: 'ac97' },
        watchdog: { name: 'w', i6300esb: { action: 'poweroff' } },
        clientPassthrough: {},
        video: { type: 'virtio' },
      },
    },
  },
  'a watchdog without a model': {
    domain: { devices: { watchdog: { name: 'w' } } },
    want: ['domain.devices.watchdog.i6300esb: Required value: it is the only supported watchdog'],
  },
  'an I/O thread for a sata disk': {
    domain: { devices: { disks: [{ name: 'a', dedicatedIOThread: true, disk: { bus: 'sata' } }] } },
    want: [
      'domain.devices.disks[0].dedicatedIOThread: Invalid value: true: IOThreads are not supported for disks on a sata bus',
    ],
  },
  'persistent reservations': {
    domain: { devices: { disks: [{ name: 'a', lun: { reservation: true } }] } },
    spec: { volumes: [{ name: 'a', persistentVolumeClaim: { claimName: 'a' } }] },
    want: ['domain.devices.disks[0].lun.reservation: Forbidden: persistent reservations are not passed through'],
  },
  'more devices than USB ports': {
    domain: {
      devices: {
        clientPassthrough: {},
        disks: Array.from({ length: 12 }, (_, i) => ({ name: `d${i}`, disk: { bus: 'usb' as const } })),
      },
    },
    want: [
      'domain.devices: Forbidden: there are 16 disks, inputs and redirection slots on the usb bus; at most 15 are possible',
    ],
  },
  'two interfaces with the same acpiIndex': {
    domain: {
      devices: {
        interfaces: ['a', 'b'].map((name) => ({ name, acpiIndex: 5, bridge: {} })),
      },
    },
    spec: { networks: ['a', 'b'].map((name) => ({ name, multus: { networkName: 'br0' } })) },
    want: ['domain.devices.interfaces[1].acpiIndex: Duplicate value: 5'],
  },
  'a clock with utc and an invalid time zone': {
    domain: { clock: { utc: {}, timezone: '../etc/passwd' } },
    want: [
      'domain.clock: Forbidden: only one of utc, timezone may be set',
      'domain.clock.timezone: Invalid value: "../etc/passwd": must be the name of a time zone (e.g. Europe/Vienna)',
    ],
  },
  'unsupported timer settings': {
    domain: {
      clock: {
        timer: { rtc: { present: false }, hpet: { tickPolicy: 'merge' }, pit: { tickPolicy: 'catchup' } },
      },
    },
    want: [
      'domain.clock.timer.rtc.present: Forbidden: may not be false: every PC has this clock',
      'domain.clock.timer.hpet.tickPolicy: Unsupported value: "merge": supported values: "delay"',
      'domain.clock.timer.pit.tickPolicy: Unsupported value: "catchup": supported values: "delay", "discard"',
    ],
  },
  'a duplicate CPU feature': {
    domain: { cpu: { features: [{ name: 'avx2' }, { name: 'avx2', policy: 'disable' }] } },
    want: ['domain.cpu.features[1].name: Duplicate value: "avx2"'],
  },
  'downwardAPI files without a source, with a duplicate path, or with an unknown source': {
    spec: {
      volumes: [
        {
          name: 'a',
          downwardAPI: {
            fields: [
              { path: 'x', fieldRef: { apiVersion: 'v1', fieldPath: 'metadata.uid' } },
              { path: 'x', fieldRef: { apiVersion: 'v2', fieldPath: 'metadata.name' } },
              { path: 'y' },
              // Refused elsewhere as an unknown field.
              { path: 'z', resourceFieldRef: { resource: 'limits.cpu' } } as { path: string },
            ],
          },
        },
      ],
    },
    domain: { devices: { disks: [{ name: 'a', cdrom: {} }] } },
    want: [
      'volumes[0].downwardAPI.fields[1].path: Duplicate value: "x"',
      'volumes[0].downwardAPI.fields[1].fieldRef.apiVersion: Unsupported value: "v2": supported values: "v1"',
      'volumes[0].downwardAPI.fields[2].fieldRef: Required value: the source of the file',
    ],
  },
  'two service accounts, and a field that instances do not have': {
    spec: {
      volumes: [
        { name: 'a', serviceAccount: { serviceAccountName: 'a' } },
        { name: 'b', serviceAccount: { serviceAccountName: 'b' } },
        { name: 'c', downwardAPI: { fields: [{ path: 'x', fieldRef: { fieldPath: 'status.podIP' } }] } },
      ],
    },
    domain: { devices: { disks: ['a', 'b', 'c'].map((name) => ({ name, cdrom: {} })) } },
    want: [
      'volumes[1].serviceAccount: Forbidden: must have max one serviceAccount volume set',
      `volumes[2].downwardAPI.fields[0].fieldRef.fieldPath: Unsupported value: "status.podIP": supported values: "metadata.annotations", "metadata.labels", "metadata.name", "metadata.namespace", "metadata.uid", "metadata.annotations['<KEY>']", "metadata.labels['<KEY>']"`,
    ],
  },
};
for (const [name, { domain = {}, spec = {}, want = [] }] of Object.entries(cases)) {
  test(name, () => {
    const complete = { volumes: volumesOf(domain), ...spec, domain: { memory: { guest: '128Mi' }, ...domain } };
    const errors = checkInstanceSpec(complete, '', configurationOf(undefined));
    assert.deepEqual(
      errors.map(({ field, message }) => `${field.replace(/^\./, '')}: ${message}`),
      want,
    );
  });
}
