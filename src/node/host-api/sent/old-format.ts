/**
 * Converts a VM in the old, flat format to devices of the new format: drives, comma-separated lists of network cards,
 * one CD-ROM drive and one floppy drive. Pure.
 */
import type { HostDevice } from '#api/host-api.ts';
import { isRecord } from '#kube/meta.ts';
import { CDROM_INDEX } from '#node/host-api/sent/disk-index.ts';
import {
  isEnabled,
  readMap,
  quoteSentValue,
  readText,
  readWholeNumber,
  readWord,
  type SentMap,
} from '#node/host-api/sent/sent-values.ts';

/** A device and its path in the request. */
export interface SentDevice {
  readonly field: string;
  readonly device: HostDevice;
  /** True for a disk that is marked as boot disk. */
  readonly isBootDisk?: boolean;
}

const LEGACY_DISKS = ['hda', 'hdb', 'hdc', 'hdd'];
const MAX_IDE_DISKS = 3;
const MAX_MONITORS = 4;
const MAX_LIST = 200;

export function parseOldFormat(vm: SentMap, errors: string[]): readonly SentDevice[] {
  return [
    ...parseVideoCards(vm, errors),
    ...parseCdrom(vm),
    ...parseFloppy(vm),
    ...parseDisks(vm, errors),
    ...parseNetworkCards(vm, errors),
    ...parseSoundCard(vm),
  ];
}

function parseVideoCards({ display, spiceMonitors }: SentMap, errors: string[]): SentDevice[] {
  const isSpice = readText(display)?.startsWith('qxl') === true;
  const monitors = isSpice ? (readWholeNumber(spiceMonitors ?? 1) ?? 0) : 1;
  if (monitors < 1 || monitors > MAX_MONITORS) {
    errors.push(`spiceMonitors: ${quoteSentValue(spiceMonitors)}; expected 1 to ${MAX_MONITORS}`);
    return [];
  }
  const vram = monitors <= 2 ? '65536' : '32768';
  return Array.from({ length: monitors }, () => ({
    field: 'display',
    device: { type: 'video', device: isSpice ? 'qxl' : 'cirrus', specParams: { vram }, address: '' },
  }));
}

/** Returns the CD-ROM drive. oVirt's hosts always added one, with or without a medium. */
function parseCdrom({ cdrom: path }: SentMap): SentDevice[] {
  const device = {
    type: 'disk',
    device: 'cdrom',
    iface: 'ide',
    index: CDROM_INDEX,
    readonly: true,
    address: '',
  } as const;
  return [{ field: 'cdrom', device: { ...device, path: readText(path) ?? '' } }];
}

function parseFloppy({ floppy: path }: SentMap): SentDevice[] {
  if (readWord(path) === undefined) return [];
  return [{ field: 'floppy', device: { type: 'disk', device: 'floppy', iface: 'fdc', index: 0, path, address: '' } }];
}

function parseSoundCard({ soundDevice }: SentMap): SentDevice[] {
  const model = readWord(soundDevice);
  return model === undefined ? [] : [{ field: 'soundDevice', device: { type: 'sound', device: model, address: '' } }];
}

function parseDisks(vm: SentMap, errors: string[]): SentDevice[] {
  const { drives = [] } = vm;
  if (!Array.isArray(drives) || drives.length > MAX_LIST || !drives.every(isRecord)) {
    errors.push(`drives: expected a list of at most ${MAX_LIST} drives`);
    return [];
  }
  const legacy = LEGACY_DISKS.flatMap((name, index): SentDevice[] => {
    const path = readWord(vm[name]);
    if (path === undefined) return [];
    return [{ field: name, device: { type: 'disk', device: 'disk', iface: 'ide', index, path, address: '' } }];
  });
  const all = [
    ...legacy,
    ...assignIdeIndexes(
      drives.map((drive, i) => toDrive(readMap(drive), `drives[${i}]`)),
      legacy,
    ),
  ];
  const ide = all.filter(({ device }) => device['iface'] === 'ide').length;
  if (ide > MAX_IDE_DISKS) {
    errors.push(`drives: ${ide} disks on ide; expected at most ${MAX_IDE_DISKS} beside the CD-ROM drive`);
  }
  return all;
}

function toDrive({ if: iface, boot, index, ...rest }: SentMap, field: string): SentDevice {
  return {
    field,
    device: {
      ...rest,
      type: 'disk',
      device: 'disk',
      iface: readWord(iface) ?? 'ide',
      ...(index === undefined ? {} : { index }),
      address: '',
    },
    isBootDisk: isEnabled(boot),
  };
}

/** Assigns the indexes 0, 1 and 3; 2 belongs to the CD-ROM drive. */
function assignIdeIndexes(drives: readonly SentDevice[], others: readonly SentDevice[]): SentDevice[] {
  const used = new Set([
    CDROM_INDEX,
    ...[...drives, ...others].map(({ device }) => readWholeNumber(device['index']) ?? -1),
  ]);
  return drives.map((drive) => {
    const { device } = drive;
    if (device['iface'] !== 'ide' || device['index'] !== undefined) return drive;
    const index = [0, 1, 3].find((free) => !used.has(free));
    // Too many disks; parseDisks reports that.
    if (index === undefined) return drive;
    used.add(index);
    return { ...drive, device: { ...device, index } };
  });
}

/**
 * Combines the lists of MAC addresses, models and bridges. If MAC addresses or bridges are missing, the last one is
 * repeated.
 */
function parseNetworkCards(vm: SentMap, errors: string[]): SentDevice[] {
  const macs = parseCommaList(vm['macAddr']);
  const models = parseCommaList(vm['nicModel']);
  const bridges = parseCommaList(vm['bridge']);
  const longest = Math.max(macs.length, bridges.length);
  if (models.length > MAX_LIST) {
    errors.push(`nicModel: ${models.length} models; expected at most ${MAX_LIST}`);
    return [];
  }
  if (models.length < longest) {
    errors.push(`nicModel: ${models.length} models; expected ${longest}, one for each network card`);
    return [];
  }
  if (models.length > 0 && macs.length === 0) {
    errors.push('macAddr: nothing; expected one for each network card');
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

function parseCommaList(value: unknown): readonly string[] {
  const text = readWord(value);
  return text === undefined ? [] : text.split(',').map((item) => item.trim());
}
