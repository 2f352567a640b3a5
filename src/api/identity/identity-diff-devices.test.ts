/** Tests the predicted changes of the devices of a VM. */
import { formatPciAddress } from '#api/devices/pci-address.ts';
import { rootPortAddress } from '#api/devices/root-ports.ts';
import { EPHEMERAL_HOTPLUG_ANNOTATION } from '#api/names.ts';
import {
  root,
  data,
  claim,
  aSpec,
  pci,
  drive,
  nicRow,
  rootRow,
  rows,
  dataRow,
  LEARNED,
  LATER,
  aRecord,
  without,
  replaceRow,
  aVmi,
  type Case,
  TEMPLATE_CHANGED,
  testDiffs,
} from '#api/testing/diff-cases.ts';

/** Returns the differences for new root ports. */
const newPorts = (first: number, last: number, why: string) =>
  Array.from({ length: last - first + 1 }, (_, i) => {
    const address = formatPciAddress(rootPortAddress(first + i));
    return `rp${first + i}: not present -> pcie-root-port, address ${address} (${why})`;
  });

const cases: Record<string, Case> = {
  'no video card if the spec does not ask for one': { spec: aSpec({ autoattachGraphicsDevice: undefined }), want: [] },
  'a requested video card, sound card and tablet, with their controller': {
    spec: aSpec({
      autoattachGraphicsDevice: true,
      sound: { name: 's', model: 'ac97' },
      inputs: [{ name: 'pen', type: 'tablet' }],
    }),
    want: [
      'xhci0: not present -> usb, address assigned at the start (a device on the usb bus needs it)',
      `display0: not present -> vga, address assigned at the start (${TEMPLATE_CHANGED})`,
      `audio0: not present -> ac97, address assigned at the start (${TEMPLATE_CHANGED})`,
      `input-pen: not present -> tablet, address assigned at the start (${TEMPLATE_CHANGED})`,
    ],
  },
  'an excluded video card, and another sound model': {
    spec: aSpec({ autoattachGraphicsDevice: false, sound: { name: 's', model: 'ac97' } }),
    record: aRecord({
      devices: [
        ...rows,
        { id: 'display0', type: 'video', device: 'vga', address: pci('0x00', '0x01') },
        { id: 'audio0', type: 'sound', device: 'ich9', address: pci('0x00', '0x1b') },
      ],
    }),
    want: [
      `audio0: ich9, address 0000:00:1b.0 -> ac97, address 0000:00:1b.0 (${TEMPLATE_CHANGED})`,
      'display0: vga, address 0000:00:01.0 -> not present (the template no longer has it)',
    ],
  },
  'a new disk and a new interface': {
    spec: aSpec({
      disks: [root, data, { name: 'more', disk: {} }],
      interfaces: [
        { name: 'default', masquerade: {} },
        { name: 'lan', bridge: {}, model: 'e1000e' },
      ],
    }),
    want: [
      'nic-lan: not present -> e1000e, address assigned at the start (new in the template)',
      'disk-more: not present -> disk on virtio, address assigned at the start (new in the template)',
    ],
  },
  'a new disk with an explicit address': {
    spec: aSpec({ disks: [root, data, { name: 'more', disk: { pciAddress: '0000:09:00.0' } }] }),
    want: [
      'disk-more: not present -> disk on virtio, address 0000:09:00.0 (new in the template)',
      ...newPorts(8, 15, 'disk-more needs a port; ports come in slots of eight'),
    ],
  },
  'new ports for a disk that has none otherwise, because removed disks had the free ones': {
    spec: aSpec({ disks: [root, data, { name: 'more', disk: {} }] }),
    record: aRecord({
      freed: ['0x03', '0x04', '0x05', '0x06', '0x07', '0x08'].map((bus) => ({
        ...rootRow,
        id: `disk-old${bus}`,
        address: pci(bus),
      })),
    }),
    want: [
      'disk-more: not present -> disk on virtio, address assigned at the start (new in the template)',
      ...newPorts(8, 15, 'disk-more needs a port; ports come in slots of eight'),
    ],
  },
  'no new ports for the remembered places of removed disks': {
    record: aRecord({ freed: [{ ...rootRow, id: 'disk-old', address: pci('0x09') }] }),
    want: [],
  },
  'a new disk that boots first': {
    spec: aSpec({ disks: [{ name: 'more', disk: {} }, root, data] }),
    want: [
      'disk-more: not present -> disk on virtio, address assigned at the start (new in the template)',
      'boot order: disk-root, disk-data -> disk-more, disk-root, disk-data (disks boot in the order of the template)',
    ],
  },
  'a disk that the template no longer has': {
    spec: aSpec({ disks: [root] }),
    want: ['disk-data: disk on scsi, address scsi 0:0:0:0 -> not present (the template no longer has it)'],
  },
  'a disk that the record no longer has': {
    spec: aSpec({ disks: [root] }),
    record: aRecord({
      devices: without('disk-data'),
      history: [{ at: LATER, changes: [{ field: 'devices.disk-data', from: dataRow }] }],
    }),
    want: ['disk-data: disk on scsi, address scsi 0:0:0:0 -> not present (the template no longer has it)'],
  },
  'nothing that was removed before the devices were read': {
    spec: aSpec({ disks: [root] }),
    record: aRecord({
      devices: without('disk-data'),
      history: [{ at: LEARNED, changes: [{ field: 'devices.disk-data', from: dataRow }] }],
    }),
    want: [],
  },
  'a disk that was removed and added again': {
    record: aRecord({
      devices: replaceRow({ ...rootRow, address: {} }),
      history: [
        {
          at: LATER,
          changes: [
            { field: 'devices.disk-root.address', from: pci('0x02') },
            { field: 'devices.disk-root.plugged', to: false },
          ],
        },
        {
          at: LATER,
          changes: [
            { field: 'devices.disk-root.plugged', from: false },
            { field: 'devices.disk-root.address', to: {} },
          ],
        },
      ],
    }),
    want: [
      'disk-root: 0000:02:00.0 -> assigned at the start (it was detached or unplugged in the meantime, and its address was released)',
    ],
  },
  'an unplugged disk': {
    spec: aSpec({ disks: [root, { ...data, plugged: false }] }),
    want: [
      'disk-data: disk on scsi, address scsi 0:0:0:0 -> unplugged (the template unplugs it; its address is released)',
    ],
  },
  'an absent interface': {
    spec: aSpec({ interfaces: [{ name: 'default', masquerade: {}, state: 'absent' }] }),
    want: ['nic-default: virtio, address 0000:01:00.0 -> unplugged (the template sets its state to absent)'],
  },
  'nothing for an interface that was absent before': {
    spec: aSpec({ interfaces: [{ name: 'default', masquerade: {}, state: 'absent' }] }),
    record: aRecord({ devices: replaceRow({ ...nicRow, plugged: false }) }),
    want: [],
  },
  'an interface that returns to its address': {
    record: aRecord({ devices: replaceRow({ ...nicRow, plugged: false }) }),
    want: ['nic-default: unplugged -> virtio, address 0000:01:00.0 (the template plugs it in)'],
  },
  'a device with another explicit address': {
    spec: aSpec({ interfaces: [{ name: 'default', masquerade: {}, pciAddress: '0000:07:00.0' }] }),
    want: ['nic-default: 0000:01:00.0 -> 0000:07:00.0 (the template sets this address)'],
  },
  'nothing for a device whose explicit address is its own': {
    spec: aSpec({ interfaces: [{ name: 'default', masquerade: {}, pciAddress: '0000:01:00.0' }] }),
    want: [],
  },
  'another disk bus': {
    spec: aSpec({ disks: [root, { name: 'data', disk: { bus: 'sata' } }] }),
    want: [
      `disk-data: disk on scsi, address scsi 0:0:0:0 -> disk on sata, address assigned at the start (${TEMPLATE_CHANGED})`,
    ],
  },
  'another interface model': {
    spec: aSpec({ interfaces: [{ name: 'default', masquerade: {}, model: 'e1000e' }] }),
    want: [`nic-default: virtio, address 0000:01:00.0 -> e1000e, address 0000:01:00.0 (${TEMPLATE_CHANGED})`],
  },
  'the first SCSI disk, with its controller': {
    record: aRecord({ devices: without('scsi0', 'disk-data') }),
    want: [
      'disk-data: not present -> disk on scsi, address assigned at the start (new in the template)',
      'scsi0: not present -> virtio-scsi, address assigned at the start (a disk on the scsi bus needs it)',
    ],
  },
  'a TPM that is added, and a balloon that is removed': {
    spec: aSpec({ tpm: {}, autoattachMemBalloon: false }),
    want: [
      `tpm0: not present -> crb (${TEMPLATE_CHANGED})`,
      'balloon0: memballoon, address 0000:00:08.0 -> not present (the template no longer has it)',
    ],
  },
  'a removed TPM, which only the instance shows': {
    vmi: aVmi(aSpec({ tpm: {} })),
    record: aRecord({ devices: [...rows, { id: 'tpm0', type: 'tpm', device: 'crb' }] }),
    want: [`tpm0: crb -> not present (${TEMPLATE_CHANGED})`],
  },
  'nothing for the row of a TPM that was removed long ago': {
    record: aRecord({ devices: [...rows, { id: 'tpm0', type: 'tpm', device: 'crb' }] }),
    want: [],
  },
  'a volume that was plugged in for this run only': {
    vmi: aVmi(aSpec(), { annotations: { [EPHEMERAL_HOTPLUG_ANNOTATION]: '["late"]' } }),
    record: aRecord({
      devices: [
        ...rows,
        { id: 'disk-late', type: 'disk', device: 'disk', address: drive('1'), specParams: { bus: 'scsi' } },
      ],
    }),
    want: ['disk-late: disk on scsi, address scsi 0:0:0:1 -> not present (it was plugged in for this run only)'],
  },
  'no change of the boot order for hotplugged disks': {
    spec: aSpec({ disks: [root, data, { name: 'late', disk: { bus: 'scsi' } }] }),
    record: aRecord({
      devices: [
        ...rows,
        { id: 'disk-late', type: 'disk', device: 'disk', address: drive('1'), specParams: { bus: 'scsi' } },
      ],
    }),
    want: [],
  },
  'another boot order': {
    spec: aSpec({
      disks: [root, { ...data, bootOrder: 2 }],
      interfaces: [{ name: 'default', masquerade: {}, bootOrder: 1 }],
    }),
    want: ['boot order: disk-root, disk-data -> nic-default, disk-data (the template sets this order)'],
  },
  'serial, access and content of a disk': {
    vmi: aVmi(aSpec({ disks: [root, { name: 'data', disk: { bus: 'scsi' }, serial: 'a' }] })),
    spec: {
      ...aSpec({ disks: [root, { name: 'data', disk: { bus: 'scsi', readonly: true }, serial: 'b' }] }),
      volumes: [claim('root'), { name: 'data', persistentVolumeClaim: { claimName: 'other' } }],
    },
    want: [
      `serial of disk-data: a -> b (${TEMPLATE_CHANGED})`,
      `access of disk-data: read-write -> read-only (${TEMPLATE_CHANGED})`,
      `content of disk-data: claim data -> claim other (${TEMPLATE_CHANGED})`,
    ],
  },
  'a new disk of a guest whose devices were not read yet': {
    vmi: aVmi(aSpec({ disks: [root] })),
    record: aRecord({ devices: undefined, learnedAt: undefined }),
    want: ['disk-data: not present -> disk on scsi, address assigned at the start (new in the template)'],
  },
  'devices that an imported machine gets': {
    record: aRecord({ devices: without('serial0'), learnedAt: undefined }),
    want: [`serial0: not present -> serial (${TEMPLATE_CHANGED})`],
  },
  'no devices of an import that are recorded before its first start': {
    record: aRecord({
      learnedAt: undefined,
      history: [
        { at: LATER, cause: 'the import of the VM', changes: rows.map((to) => ({ field: `devices.${to.id}`, to })) },
      ],
    }),
    want: [],
  },
  'ports of an imported machine whose format lists none': {
    record: aRecord({ devices: rows.filter(({ id }) => !id.startsWith('rp')), learnedAt: undefined }),
    want: newPorts(0, 7, 'the import lists no root ports; a q35 guest gets them at its first start here'),
  },
};

testDiffs(cases);
