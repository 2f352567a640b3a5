/**
 * A VM in the flat format, from before there were lists of devices: drives, comma lists of network cards, one CD-ROM and
 * one floppy drive. It becomes devices of the new format. Pure.
 */
import type { HostDevice } from '#api/host-api.ts';
import { isRecord } from '#kube/meta.ts';
import { CDROM_INDEX } from '#node/host-api/disk-index.ts';
import { isOn, mapOf, shown, textOf, wholeOf, wordOf, type SentMap } from '#node/host-api/sent-values.ts';

/** A device, and where it stood in what was sent. */
export interface SentDevice {
  readonly field: string;
  readonly device: HostDevice;
  /** A disk that is marked as the one to boot from. */
  readonly boots?: boolean;
}

const LEGACY_DISKS = ['hda', 'hdb', 'hdc', 'hdd'];
const MAX_IDE_DISKS = 3;
const MAX_MONITORS = 4;
const MAX_LIST = 200;

export function oldDevices(vm: SentMap, faults: string[]): readonly SentDevice[] {
  return [
    ...videoCards(vm, faults),
    ...cdrom(vm),
    ...floppy(vm),
    ...disks(vm, faults),
    ...networkCards(vm, faults),
    ...soundCard(vm),
  ];
}

function videoCards({ display, spiceMonitors }: SentMap, faults: string[]): SentDevice[] {
  const isSpice = textOf(display)?.startsWith('qxl') === true;
  const monitors = isSpice ? (wholeOf(spiceMonitors ?? 1) ?? 0) : 1;
  if (monitors < 1 || monitors > MAX_MONITORS) {
    faults.push(`spiceMonitors: ${shown(spiceMonitors)} is no number of monitors; expected 1 to ${MAX_MONITORS}`);
    return [];
  }
  const vram = monitors <= 2 ? '65536' : '32768';
  return Array.from({ length: monitors }, () => ({
    field: 'display',
    device: { type: 'video', device: isSpice ? 'qxl' : 'cirrus', specParams: { vram }, address: '' },
  }));
}

/** There always was a drive, with or without a medium. */
function cdrom({ cdrom: path }: SentMap): SentDevice[] {
  const device = {
    type: 'disk',
    device: 'cdrom',
    iface: 'ide',
    index: CDROM_INDEX,
    readonly: true,
    address: '',
  } as const;
  return [{ field: 'cdrom', device: { ...device, path: textOf(path) ?? '' } }];
}

function floppy({ floppy: path }: SentMap): SentDevice[] {
  if (wordOf(path) === undefined) return [];
  return [{ field: 'floppy', device: { type: 'disk', device: 'floppy', iface: 'fdc', index: 0, path, address: '' } }];
}

function soundCard({ soundDevice }: SentMap): SentDevice[] {
  const model = wordOf(soundDevice);
  return model === undefined ? [] : [{ field: 'soundDevice', device: { type: 'sound', device: model, address: '' } }];
}

function disks(vm: SentMap, faults: string[]): SentDevice[] {
  const { drives = [] } = vm;
  if (!Array.isArray(drives) || drives.length > MAX_LIST || !drives.every(isRecord)) {
    faults.push(`drives: expected a list of at most ${MAX_LIST} drives`);
    return [];
  }
  const legacy = LEGACY_DISKS.flatMap((name, index): SentDevice[] => {
    const path = wordOf(vm[name]);
    if (path === undefined) return [];
    return [{ field: name, device: { type: 'disk', device: 'disk', iface: 'ide', index, path, address: '' } }];
  });
  const all = [
    ...legacy,
    ...withIdeIndexes(
      drives.map((drive, i) => driveOf(mapOf(drive), `drives[${i}]`)),
      legacy,
    ),
  ];
  const ide = all.filter(({ device }) => device['iface'] === 'ide').length;
  if (ide > MAX_IDE_DISKS) {
    faults.push(`drives: ${ide} disks on ide are too many; expected ${MAX_IDE_DISKS} beside the CD-ROM drive`);
  }
  return all;
}

function driveOf({ if: iface, boot, index, ...rest }: SentMap, field: string): SentDevice {
  return {
    field,
    device: {
      ...rest,
      type: 'disk',
      device: 'disk',
      iface: wordOf(iface) ?? 'ide',
      ...(index === undefined ? {} : { index }),
      address: '',
    },
    boots: isOn(boot),
  };
}

/** 0, 1 and 3: the third one is the CD-ROM drive's. */
function withIdeIndexes(drives: readonly SentDevice[], others: readonly SentDevice[]): SentDevice[] {
  const taken = new Set([CDROM_INDEX, ...[...drives, ...others].map(({ device }) => wholeOf(device['index']) ?? -1)]);
  return drives.map((drive) => {
    const { device } = drive;
    if (device['iface'] !== 'ide' || device['index'] !== undefined) return drive;
    const index = [0, 1, 3].find((free) => !taken.has(free));
    // Too many of them: told as such.
    if (index === undefined) return drive;
    taken.add(index);
    return { ...drive, device: { ...device, index } };
  });
}

/** Three lists that belong together. MAC addresses and bridges that are missing are the last one again. */
function networkCards(vm: SentMap, faults: string[]): SentDevice[] {
  const macs = listOf(vm['macAddr']);
  const models = listOf(vm['nicModel']);
  const bridges = listOf(vm['bridge']);
  const longest = Math.max(macs.length, bridges.length);
  if (models.length > MAX_LIST) {
    faults.push(`nicModel: ${models.length} models are too many; expected at most ${MAX_LIST}`);
    return [];
  }
  if (models.length < longest) {
    faults.push(`nicModel: ${models.length} models are too few; expected ${longest}, one for each network card`);
    return [];
  }
  if (models.length > 0 && macs.length === 0) {
    faults.push('macAddr: there is none; expected one for each network card');
    return [];
  }
  return models.map((model, i) => ({
    field: `nicModel[${i}]`,
    device: {
      type: 'interface',
      device: 'bridge',
      macAddr: macs[i] ?? macs.at(-1) ?? '',
      nicModel: model === 'pv' ? 'virtio' : model,
      network: bridges[i] ?? bridges.at(-1) ?? '',
      address: '',
    },
  }));
}

function listOf(value: unknown): readonly string[] {
  const text = wordOf(value);
  return text === undefined ? [] : text.split(',').map((item) => item.trim());
}
