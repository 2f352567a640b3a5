/** Converts a device of the host API to the spec of a VMI and to a row of learned devices. Pure. */
import type { Disk } from '#api/domain/disk.ts';
import type { Interface, Network } from '#api/domain/interface.ts';
import type { LearnedDevice, SpecParams } from '#api/devices/learned-device.ts';
import { driveAddress, ideAddress } from '#node/hardware/drive-address.ts';
import type { DeviceEntry } from '#node/host-api/sent/device-entries.ts';
import { sentAddressOf, sentBootOrderOf, ifaceOf, nicModelOf } from '#node/host-api/sent/device-fields.ts';
import { isBlank } from '#node/host-api/sent/key-rules.ts';
import { isEnabled, readText, readWholeNumber, readWord } from '#node/host-api/sent/sent-values.ts';

/** Returns the name in the spec of a disk or network card: its id without the prefix. */
export function entryName({ id }: DeviceEntry): string {
  return id.slice(id.indexOf('-') + 1);
}

export function toDiskSpec(entry: DeviceEntry): Disk {
  const { device } = entry;
  const bootOrder = sentBootOrderOf(device);
  const serial = device.device === 'disk' ? (readWord(device['serial']) ?? readWord(device['imageID'])) : undefined;
  return {
    name: entryName(entry),
    ...(bootOrder === undefined ? {} : { bootOrder }),
    ...(serial === undefined ? {} : { serial }),
    ...(isEnabled(device['optional']) ? { optional: true } : {}),
    ...toDiskTarget(entry),
  };
}

function toDiskTarget({ device }: DeviceEntry): Partial<Disk> {
  const bus = ifaceOf(device);
  const readonly = isEnabled(device.readonly);
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

/** Converts a network card. Without a network it is behind the host's address translation (masquerade). */
export function toInterfaceSpec(entry: DeviceEntry): { readonly item: Interface; readonly network: Network } {
  const { device } = entry;
  const name = entryName(entry);
  const bootOrder = sentBootOrderOf(device);
  const bridge = readWord(device['network']);
  const mac = readText(device['macAddr']);
  return {
    item: {
      name,
      model: nicModelOf(device) ?? 'virtio',
      ...(mac === undefined ? {} : { macAddress: mac }),
      ...(bootOrder === undefined ? {} : { bootOrder }),
      ...(!isBlank(device['linkActive']) && !isEnabled(device['linkActive']) && { state: 'down' as const }),
      ...(bridge === undefined ? { masquerade: {} } : { bridge: {} }),
    },
    network: bridge === undefined ? { name, pod: {} } : { name, multus: { networkName: bridge } },
  };
}

export function toRow(entry: DeviceEntry): LearnedDevice {
  const { id, device } = entry;
  const address = sentAddressOf(device) ?? indexAddress(entry);
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

/** Returns the address of a disk on ide or fdc, which its index decides. */
function indexAddress({ device }: DeviceEntry): LearnedDevice['address'] {
  if (device.type !== 'disk') return undefined;
  const index = readWholeNumber(device['index']) ?? 0;
  if (ifaceOf(device) === 'ide') return ideAddress(index);
  return ifaceOf(device) === 'fdc' ? driveAddress(index) : undefined;
}

/** Returns the specParams of the row. The model of a controller may be in the device or in its specParams. */
function rowParams({ device }: DeviceEntry): SpecParams | undefined {
  if (device.type === 'disk') return { bus: ifaceOf(device) };
  const model = readWord(device.specParams?.['model'] ?? device['model']);
  return model === undefined ? undefined : { model };
}
