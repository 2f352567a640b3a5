/** One device of the host API as our own spec has it, and as a row of what is known of a guest. Pure. */
import type { Disk } from '#api/domain/disk.ts';
import type { Interface, Network } from '#api/domain/interface.ts';
import type { LearnedDevice, SpecParams } from '#api/learned-device.ts';
import { driveAddress, ideAddress } from '#node/definition/addresses/drive-address.ts';
import type { DeviceEntry } from '#node/host-api/device-entries.ts';
import { addressOf, bootOrderOf, ifaceOf, modelOf } from '#node/host-api/device-fields.ts';
import { isEmpty } from '#node/host-api/key-rules.ts';
import { isOn, textOf, wholeOf, wordOf } from '#node/host-api/sent-values.ts';

/** Disks and network cards: the name that their id is made of. */
export function nameOf({ id }: DeviceEntry): string {
  return id.slice(id.indexOf('-') + 1);
}

export function diskOf(entry: DeviceEntry): Disk {
  const { device } = entry;
  const bootOrder = bootOrderOf(device);
  const serial = device.device === 'disk' ? (wordOf(device['serial']) ?? wordOf(device['imageID'])) : undefined;
  return {
    name: nameOf(entry),
    ...(bootOrder === undefined ? {} : { bootOrder }),
    ...(serial === undefined ? {} : { serial }),
    ...(isOn(device['optional']) ? { optional: true } : {}),
    ...targetOf(entry),
  };
}

function targetOf({ device }: DeviceEntry): Partial<Disk> {
  const bus = ifaceOf(device);
  const readonly = isOn(device.readonly);
  switch (device.device) {
    case 'cdrom':
      return { cdrom: { bus: bus as NonNullable<NonNullable<Disk['cdrom']>['bus']> } };
    case 'floppy':
      return { floppy: { readonly } };
    case 'lun':
      return { lun: { bus: 'scsi', readonly } };
    default:
      return { disk: { bus: bus as NonNullable<NonNullable<Disk['disk']>['bus']>, readonly } };
  }
}

/** Without a network it is behind the host, which translates addresses. */
export function interfaceOf(entry: DeviceEntry): { readonly item: Interface; readonly network: Network } {
  const { device } = entry;
  const name = nameOf(entry);
  const bootOrder = bootOrderOf(device);
  const bridge = wordOf(device['network']);
  const mac = textOf(device['macAddr']);
  return {
    item: {
      name,
      model: modelOf(device) ?? 'virtio',
      ...(mac === undefined ? {} : { macAddress: mac }),
      ...(bootOrder === undefined ? {} : { bootOrder }),
      ...(!isEmpty(device['linkActive']) && !isOn(device['linkActive']) && { state: 'down' as const }),
      ...(bridge === undefined ? { masquerade: {} } : { bridge: {} }),
    },
    network: bridge === undefined ? { name, pod: {} } : { name, multus: { networkName: bridge } },
  };
}

export function rowOf(entry: DeviceEntry): LearnedDevice {
  const { id, device } = entry;
  const address = addressOf(device) ?? indexAddress(entry);
  const specParams = rowParams(entry);
  return {
    id,
    type: device.type,
    device: device.device,
    managed: device.managed !== false,
    ...(address === undefined ? {} : { address }),
    ...(specParams === undefined ? {} : { specParams }),
  };
}

/** On these two the index is the place. */
function indexAddress({ device }: DeviceEntry): LearnedDevice['address'] {
  if (device.type !== 'disk') return undefined;
  const index = wholeOf(device['index']) ?? 0;
  if (ifaceOf(device) === 'ide') return ideAddress(index);
  return ifaceOf(device) === 'fdc' ? driveAddress(index) : undefined;
}

/** The model of a controller may stand beside the other parameters, or among them. */
function rowParams({ device }: DeviceEntry): SpecParams | undefined {
  if (device.type === 'disk') return { bus: ifaceOf(device) };
  const model = wordOf(device.specParams?.['model'] ?? device['model']);
  return model === undefined ? undefined : { model };
}
