/** Tests the rules for disks and volumes. */
import { type Case, devices, volumes, testRules } from '#api/validation/testing/instance-spec-cases.ts';

const many = (count: number, disk: object) => {
  const names = Array.from({ length: count }, (_, i) => `d${i}`);
  return {
    ...devices({ interfaces: null, autoattachPodInterface: false, disks: names.map((name) => ({ name, disk })) }),
    networks: null,
    volumes: names.map((name) => ({ name, emptyDisk: { capacity: '1Mi' } })),
  };
};

const ALWAYS_WRITABLE = 'sata disks are always writable; use virtio, scsi or a cdrom for read-only content';

const cases: Record<string, Case> = {
  'no disks and no interfaces': {
    spec: { ...devices({ disks: null, interfaces: null }), networks: null, volumes: null },
  },
  'a disk without a volume, and a volume without a disk': {
    spec: { ...devices({ disks: [{ name: 'a' }] }), volumes: [{ name: 'b', emptyDisk: { capacity: '1Gi' } }] },
    want: [
      'devices.disks[0].name: Invalid value: "a": there is no volume with this name in spec.volumes',
      'volumes[0].name: Invalid value: "b": there is no disk with this name in spec.domain.devices.disks',
    ],
  },
  'two disks with the same name': {
    spec: {
      ...devices({ disks: [{ name: 'a' }, { name: 'a' }] }),
      volumes: [{ name: 'a', emptyDisk: { capacity: 1 } }],
    },
    want: ['devices.disks[1].name: Duplicate value: "a"'],
  },
  'a name that is not a DNS label': {
    spec: volumes({ name: 'a.b', emptyDisk: { capacity: '1Gi' } }),
    want: [
      'devices.disks[0].name: Invalid value: "a.b": must not contain dots',
      'volumes[0].name: Invalid value: "a.b": must not contain dots',
    ],
  },
  'a disk with two kinds': {
    spec: {
      ...devices({ disks: [{ name: 'a', disk: {}, cdrom: { readonly: false } }] }),
      volumes: [{ name: 'a', emptyDisk: { capacity: 1 } }],
    },
    want: [
      'devices.disks[0].cdrom: Forbidden: only one of disk and cdrom may be set',
      'devices.disks[0].cdrom.readonly: Forbidden: a CD-ROM is always read-only',
    ],
  },
  'an open tray': {
    spec: {
      ...devices({ disks: [{ name: 'a', cdrom: { tray: 'open' } }] }),
      volumes: [{ name: 'a', emptyDisk: { capacity: 1 } }],
    },
    want: ['devices.disks[0].cdrom.tray: Forbidden: open is not supported yet'],
  },
  'read-only disks on sata': {
    spec: {
      ...devices({
        disks: [
          { name: 'a', disk: { bus: 'sata', readonly: true } },
          { name: 'b', disk: { bus: 'sata' } },
        ],
      }),
      volumes: [
        { name: 'a', emptyDisk: { capacity: 1 } },
        { name: 'b', persistentVolumeClaim: { claimName: 'b', readOnly: true } },
      ],
    },
    want: [
      `devices.disks[0].disk.bus: Invalid value: "sata": ${ALWAYS_WRITABLE}`,
      `devices.disks[1].disk.bus: Invalid value: "sata": ${ALWAYS_WRITABLE}`,
    ],
  },
  'a CD-ROM on sata with a read-only claim': {
    spec: {
      ...devices({ disks: [{ name: 'a', cdrom: { bus: 'sata' } }] }),
      volumes: [{ name: 'a', persistentVolumeClaim: { claimName: 'a', readOnly: true } }],
    },
  },
  'six disks on sata': { spec: many(6, { bus: 'sata' }) },
  'seven disks on sata': {
    spec: many(7, { bus: 'sata' }),
    want: ['devices.disks: Too many: 7: must have at most 6 items on the sata bus'],
  },
  'as many virtio disks as ports': { spec: many(28, {}) },
  'one virtio disk more than ports': {
    spec: many(29, {}),
    want: [
      'devices: Forbidden: there are 29 interfaces and virtio disks; at most 28 are possible; use the scsi bus for disks',
    ],
  },
  'as many virtio disks as ports, and the default interface': {
    spec: { ...many(28, {}), ...devices({ ...many(28, {}).domain.devices, autoattachPodInterface: null }) },
    want: [
      'devices: Forbidden: there are 29 interfaces and virtio disks; at most 28 are possible; use the scsi bus for disks',
    ],
  },
  'many disks on scsi': { spec: many(100, { bus: 'scsi' }) },

  'a volume without a source': {
    spec: volumes({ name: 'a' }),
    want: [
      'volumes[0]: Required value: one of persistentVolumeClaim, ephemeral, emptyDisk, hostDisk, cloudInitNoCloud, directLun, configMap, secret, serviceAccount, downwardAPI must be set',
    ],
  },
  'a volume with two sources': {
    spec: volumes({ name: 'a', emptyDisk: { capacity: '1Gi' }, cloudInitNoCloud: { userData: 'x' } }),
    want: ['volumes[0]: Forbidden: only one of emptyDisk, cloudInitNoCloud may be set'],
  },
  'a claim with an invalid name': {
    spec: volumes({ name: 'a', persistentVolumeClaim: { claimName: '../b' } }),
    want: [
      `volumes[0].persistentVolumeClaim.claimName: Invalid value: "../b": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')`,
    ],
  },
  'an ephemeral volume without a claim': {
    spec: volumes({ name: 'a', ephemeral: {} }),
    want: ['volumes[0].ephemeral.persistentVolumeClaim: Required value'],
  },
  'an emptyDisk of size zero': {
    spec: volumes({ name: 'a', emptyDisk: { capacity: '0' } }),
    want: ['volumes[0].emptyDisk.capacity: Invalid value: "0": must be greater than zero'],
  },
  'a claim that two disks write': {
    spec: volumes(
      { name: 'a', persistentVolumeClaim: { claimName: 'c', readOnly: true } },
      { name: 'b', persistentVolumeClaim: { claimName: 'c' } },
    ),
    want: ['volumes[1].persistentVolumeClaim.claimName: Duplicate value: "c"'],
  },
  'a claim that two disks read': {
    spec: volumes(
      { name: 'a', persistentVolumeClaim: { claimName: 'c', readOnly: true } },
      { name: 'b', persistentVolumeClaim: { claimName: 'c', readOnly: true } },
      { name: 'd', ephemeral: { persistentVolumeClaim: { claimName: 'c' } } },
    ),
  },
  'a shared hostDisk': {
    spec: volumes({ name: 'a', hostDisk: { path: '/srv/a.img', type: 'Disk', shared: true } }),
    want: ['volumes[0].hostDisk.shared: Forbidden: is not supported yet'],
  },
  'a hostDisk': { spec: volumes({ name: 'a', hostDisk: { path: '/srv/a.img', type: 'Disk' } }) },
  'a hostDisk with a relative path and no capacity': {
    spec: volumes({ name: 'a', hostDisk: { path: 'a.img', type: 'DiskOrCreate' } }),
    want: [
      'volumes[0].hostDisk.path: Invalid value: "a.img": must be the absolute path of a file',
      'volumes[0].hostDisk.capacity: Required value: the size of the file if it is created',
    ],
  },
  'a hostDisk with .. in its path': {
    spec: volumes({ name: 'a', hostDisk: { path: '/srv/../etc/shadow', type: 'Disk' } }),
    want: [`volumes[0].hostDisk.path: Invalid value: "/srv/../etc/shadow": must not contain '..'`],
  },
  'cloud-init with network data only': { spec: volumes({ name: 'a', cloudInitNoCloud: { networkData: 'x' } }) },
  'cloud-init without data': {
    spec: volumes({ name: 'a', cloudInitNoCloud: {} }),
    want: ['volumes[0].cloudInitNoCloud: Required value: one of userData, userDataBase64, secretRef must be set'],
  },
  'cloud-init with two sources of user data, one of them invalid': {
    spec: volumes({ name: 'a', cloudInitNoCloud: { userData: 'x', userDataBase64: 'geheim!' } }),
    want: [
      'volumes[0].cloudInitNoCloud: Forbidden: only one of userData, userDataBase64 may be set',
      'volumes[0].cloudInitNoCloud.userDataBase64: Invalid value: "": is not valid base64',
    ],
  },
};

testRules(cases);
