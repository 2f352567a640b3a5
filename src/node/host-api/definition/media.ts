/** Finds the media of the disks of a VM, and its kernel. */
import type { Medium } from '#node/definition/devices/disk.ts';
import type { KernelFiles } from '#node/definition/kernel.ts';
import { entriesOfType } from '#node/host-api/definition/define-input.ts';
import type { DeviceEntry } from '#node/host-api/sent/device-entries.ts';
import { sourceKey, readDiskSource } from '#node/host-api/sent/disk-source.ts';
import type { HostImages, MediumOptions } from '#node/host-api/host-images.ts';
import { isEnabled, quoteSentValue, type SentMap } from '#node/host-api/sent/sent-values.ts';

interface FoundMedia {
  /** Keyed by our id of the disk. */
  readonly media: ReadonlyMap<string, Medium>;
  readonly errors: readonly string[];
  /** Notes about optional disks that are missing. */
  readonly notes: readonly string[];
}

export async function findMedia(entries: readonly DeviceEntry[], images: HostImages): Promise<FoundMedia> {
  const media = new Map<string, Medium>();
  const errors: string[] = [];
  const notes: string[] = [];
  const entryBySource = new Map<string, DeviceEntry>();
  for (const entry of entriesOfType(entries, 'disk')) {
    const { id, field, device } = entry;
    const source = readDiskSource(device, images.dir);
    const options = mediumOptions(entry, errors);
    if (source.is === 'invalid') errors.push(`${field}: ${source.error}`);
    if (source.is === 'none' && !isRemovable(entry)) {
      errors.push(`${field}: the disk has no source; expected a path, the ids of a volume, a GUID or a UUID`);
    }
    if (source.is === 'invalid' || source.is === 'none') continue;
    const key = sourceKey(source) ?? '';
    const other = entryBySource.get(key);
    if (other !== undefined && !(options.readonly && isReadonly(other))) {
      errors.push(`${field}: its source is already used by ${other.field}`);
    }
    entryBySource.set(key, entry);
    const found = await images.find(source, options);
    if (found.medium !== undefined) media.set(id, found.medium);
    else if (found.isMissing && isEnabled(device['optional'])) notes.push(`${field} is left out: ${found.error}`);
    else errors.push(`${field}: ${found.error}`);
  }
  return { media, errors, notes };
}

/** Returns the files of a kernel to boot instead of a disk, or undefined if none was sent. Appends to `errors`. */
export async function findKernel(
  sent: SentMap,
  images: HostImages,
  errors: string[],
): Promise<KernelFiles | undefined> {
  const pathOf = async (key: string): Promise<string | undefined> => {
    const source = readDiskSource({ path: sent[key] }, images.dir);
    if (source.is === 'invalid') errors.push(`${key}: ${source.error}`);
    if (source.is === 'invalid' || source.is === 'none') return undefined;
    const found = await images.find(source, { readonly: true, format: 'raw' });
    if (found.medium === undefined) errors.push(`${key}: ${found.error}`);
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

/** Returns the options for the medium. Media of CD-ROM and floppy drives are raw unless the caller sent a format. */
function mediumOptions(entry: DeviceEntry, errors: string[]): MediumOptions {
  const { format } = entry.device;
  const readonly = isReadonly(entry);
  if (format === undefined || format === '') return isRemovable(entry) ? { readonly, format: 'raw' } : { readonly };
  const known = FORMATS.get(format);
  if (known === undefined) errors.push(`${entry.field}.format: ${quoteSentValue(format)}; expected raw or cow`);
  return { readonly, ...(known === undefined ? {} : { format: known }) };
}

function isReadonly({ device }: DeviceEntry): boolean {
  return device.device === 'cdrom' || isEnabled(device.readonly);
}

/** Reports whether the drive can be present without a medium. */
function isRemovable({ device }: DeviceEntry): boolean {
  return device.device === 'cdrom' || device.device === 'floppy';
}
