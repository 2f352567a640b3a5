/** A guest with every kind of device, on more than one slot of root ports. */
import { invariant } from '#lib/invariant.ts';
import { defineDomain } from '#node/definition/define-domain.ts';
import type { Medium } from '#node/definition/devices/disk.ts';
import type { DomainDefinition } from '#node/hardware/domain-definition.ts';
import { anInput, aVmi, someCapabilities, someMedia } from '#node/definition/testing/a-vmi.ts';

const VOLUMES = ['root', 'data', 'sata', 'iso', 'scsi', 'scsi-iso', 'stick'];

/** `bridge: false` is for machines without a bridge. */
export function everyDevice(
  media: ReadonlyMap<string, Medium> = someMedia(VOLUMES),
  options: { bridge?: boolean } = {},
): DomainDefinition {
  const hasBridge = options.bridge ?? true;
  const vmi = aVmi(
    {
      memory: { guest: '256Mi' },
      cpu: { cores: 2 },
      ioThreadsPolicy: 'auto',
      clock: { timezone: 'Europe/Vienna', timer: { hpet: { present: false } } },
      chassis: { manufacturer: 'Case, Inc.', sku: 'K' },
      features: { hyperv: { relaxed: {} } },
      firmware: { uuid: '5d307ca9-b3ef-428c-8861-06e72d69f223', serial: 'S-1' },
      devices: {
        disks: [
          { name: 'root', serial: 'ROOT-1', disk: { bus: 'virtio', pciAddress: '0000:04:00.0' }, bootOrder: 1 },
          { name: 'data', disk: { readonly: true } },
          { name: 'sata', disk: { bus: 'sata' } },
          { name: 'iso', cdrom: {} },
          { name: 'tray', cdrom: {} },
          { name: 'scsi', disk: { bus: 'scsi' }, cache: 'writethrough' },
          { name: 'scsi-iso', cdrom: { bus: 'scsi' } },
          { name: 'stick', disk: { bus: 'usb' }, serial: 'STICK-1' },
        ],
        interfaces: [
          { name: 'default', macAddress: '02:00:00:00:00:01' },
          { name: 'old', model: 'e1000e', macAddress: '02:00:00:00:00:02', pciAddress: '0000:0c:00.0' },
          { name: 'pcnet', model: 'pcnet', macAddress: '02:00:00:00:00:03' },
          { name: 'ne2k', model: 'ne2k_pci', macAddress: '02:00:00:00:00:04', state: 'down' },
          { name: 'rtl', model: 'rtl8139', macAddress: '02:00:00:00:00:05', acpiIndex: 5 },
          { name: 'e1000', model: 'e1000', macAddress: '02:00:00:00:00:06' },
        ],
        inputs: [
          { name: 'pointer', type: 'tablet' },
          { name: 'second', type: 'tablet', bus: 'virtio' },
        ],
        sound: { name: 'speaker' },
        watchdog: { name: 'dog', i6300esb: { action: 'reset' } },
        clientPassthrough: {},
        blockMultiQueue: true,
        rng: {},
        tpm: {},
      },
    },
    {
      volumes: VOLUMES.map((name) => ({ name, emptyDisk: { capacity: '1Mi' } })),
      networks: [
        { name: 'default', pod: {} },
        ...['pcnet', 'ne2k', 'rtl', 'e1000'].map((name) => ({ name, pod: {} })),
        hasBridge ? { name: 'old', multus: { networkName: 'br0' } } : { name: 'old', pod: {} },
      ],
    },
  );
  const { definition, problems } = defineDomain(
    anInput(vmi, { volumes: media, capabilities: someCapabilities('tcg') }),
  );
  invariant(definition !== undefined, `every device is valid: ${JSON.stringify(problems)}`);
  return definition;
}
