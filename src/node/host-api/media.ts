/** The media of the disks of a VM, found or told why not. */
import type { Medium } from '#node/definition/devices/disk.ts';
import type { KernelFiles } from '#node/definition/kernel.ts';
import { ofType } from '#node/host-api/define-input.ts';
import type { DeviceEntry } from '#node/host-api/device-entries.ts';
import { sourceKey, sourceOf } from '#node/host-api/disk-source.ts';
import type { HostImages, MediumWish } from '#node/host-api/host-images.ts';
import { isOn, shown, type SentMap } from '#node/host-api/sent-values.ts';

export interface FoundMedia {
  /** By our id of the disk. */
  readonly media: ReadonlyMap<string, Medium>;
  readonly faults: readonly string[];
  /** Optional disks that are not there. */
  readonly notes: readonly string[];
}

export async function findMedia(entries: readonly DeviceEntry[], images: HostImages): Promise<FoundMedia> {
  const media = new Map<string, Medium>();
  const faults: string[] = [];
  const notes: string[] = [];
  const users = new Map<string, DeviceEntry>();
  for (const entry of ofType(entries, 'disk')) {
    const { id, field, device } = entry;
    const source = sourceOf(device, images.dir);
    const wish = wishOf(entry, faults);
    if (source.is === 'wrong') faults.push(`${field}: ${source.fault}`);
    if (source.is === 'none' && !isDrive(entry)) {
      faults.push(`${field}: nothing is in it; expected a path, the ids of a volume, a GUID or a UUID`);
    }
    if (source.is === 'wrong' || source.is === 'none') continue;
    const key = sourceKey(source) ?? '';
    const other = users.get(key);
    if (other !== undefined && !(wish.readonly && isReadonly(other))) {
      faults.push(`${field}: what is in it is in ${other.field}, too`);
    }
    users.set(key, entry);
    const found = await images.find(source, wish);
    if (found.medium !== undefined) media.set(id, found.medium);
    else if (found.isMissing && isOn(device['optional'])) notes.push(`${field} is left out: ${found.fault}`);
    else faults.push(`${field}: ${found.fault}`);
  }
  return { media, faults, notes };
}

/** A kernel that is booted instead of a disk; undefined where none was sent. */
export async function findKernel(
  sent: SentMap,
  images: HostImages,
  faults: string[],
): Promise<KernelFiles | undefined> {
  const pathOf = async (key: string): Promise<string | undefined> => {
    const source = sourceOf({ path: sent[key] }, images.dir);
    if (source.is === 'wrong') faults.push(`${key}: ${source.fault}`);
    if (source.is === 'wrong' || source.is === 'none') return undefined;
    const found = await images.find(source, { readonly: true, format: 'raw' });
    if (found.medium === undefined) faults.push(`${key}: ${found.fault}`);
    return found.medium?.source.path;
  };
  const [kernelPath, initrdPath] = [await pathOf('kernel'), await pathOf('initrd')];
  if (kernelPath === undefined) return undefined;
  return { kernelPath, ...(initrdPath === undefined ? {} : { initrdPath }) };
}

const FORMATS: ReadonlyMap<unknown, 'raw' | 'qcow2'> = new Map([
  ['raw', 'raw'],
  ['cow', 'qcow2'],
  ['qcow2', 'qcow2'],
]);

/** What is on a CD or a floppy disk is what its bytes are. */
function wishOf(entry: DeviceEntry, faults: string[]): MediumWish {
  const { format } = entry.device;
  const readonly = isReadonly(entry);
  if (format === undefined || format === '') return isDrive(entry) ? { readonly, format: 'raw' } : { readonly };
  const known = FORMATS.get(format);
  if (known === undefined) faults.push(`${entry.field}.format: ${shown(format)}; expected raw or cow`);
  return { readonly, ...(known === undefined ? {} : { format: known }) };
}

function isReadonly({ device }: DeviceEntry): boolean {
  return device.device === 'cdrom' || isOn(device.readonly);
}

/** Whether it is there without a medium, too. */
function isDrive({ device }: DeviceEntry): boolean {
  return device.device === 'cdrom' || device.device === 'floppy';
}
