/**
 * Devices of others as rows of ours: the same word for the same thing, whoever wrote the file, and ids as our own guests
 * have them (scsi0, rp3, balloon0), so that the next start finds their addresses. Pure.
 */
import type { DeviceAddress, LearnedDevice, SpecParams } from '#api/learned-device.ts';

export interface ForeignDevice {
  readonly type: string;
  readonly device: string;
  readonly address?: DeviceAddress;
  readonly bootOrder?: number;
  readonly managed?: boolean;
  readonly plugged?: boolean;
  readonly readonly?: boolean;
  readonly specParams?: SpecParams;
  /** Our own id, where the file is of ours. */
  readonly id?: string;
  readonly name?: string;
}

/** Ids become parts of options of QEMU. */
const ID = /^[a-z0-9][A-Za-z0-9._-]{0,99}$/;
const ROOT_PORTS = 32;

export function isDeviceId(text: string): boolean {
  return ID.test(text);
}

/** Gives ids to what has none. Where an id is taken, the next free one of its kind is given. */
export class DeviceRows {
  readonly rows: LearnedDevice[] = [];
  readonly #taken = new Set<string>();

  /** With the id that it has: for disks and interfaces, whose names are unique, and for files of ours. */
  add(row: LearnedDevice): void {
    this.#taken.add(row.id);
    this.rows.push(tidyRow(row));
  }

  addForeign(foreign: ForeignDevice): void {
    const { type, device } = ourWords(foreign);
    this.add({ ...foreign, type, device, id: foreign.id ?? this.#idFor(foreign, device) });
  }

  #idFor(foreign: ForeignDevice, device: string): string {
    if (device === 'pcie-root-port') {
      const index = Number(textOf(foreign.specParams, 'index'));
      const id = `rp${index - 1}`;
      if (Number.isSafeInteger(index) && index >= 1 && index <= ROOT_PORTS && !this.#taken.has(id)) return id;
    }
    const base = idBase(foreign.type, device);
    for (let n = 0; ; n++) if (!this.#taken.has(`${base}${n}`)) return `${base}${n}`;
  }
}

/**
 * Returns the row without fields whose absence says the same. A row that is managed only by a list of its cluster is
 * unmanaged elsewhere.
 */
export function tidyRow(row: LearnedDevice): LearnedDevice {
  const { id, type, device, name, address, bootOrder, plugged, readonly, specParams } = row;
  const managed = row.specialManaged === true ? false : row.managed;
  return {
    id,
    type,
    device,
    ...(name !== undefined && { name }),
    ...(address !== undefined && Object.keys(address).length > 0 && { address }),
    ...(bootOrder !== undefined && bootOrder > 0 && { bootOrder }),
    ...(managed !== undefined && { managed }),
    ...(plugged === false && { plugged }),
    ...(readonly === true && { readonly }),
    ...(specParams !== undefined && Object.keys(specParams).length > 0 && { specParams }),
  };
}

function ourWords({ type, device, specParams }: ForeignDevice): { type: string; device: string } {
  const model = textOf(specParams, 'model');
  if (type === 'controller' && device === 'scsi' && model === 'virtio-scsi') return { type, device: 'virtio-scsi' };
  if (type === 'controller' && device === 'pci' && model === 'pcie-root-port') return { type, device: model };
  if (type === 'console' && textOf(specParams, 'consoleType') === 'serial') return { type, device: 'serial' };
  if (type === 'tpm' && device === 'tpm') return { type, device: model === 'tpm-tis' ? 'tis' : 'crb' };
  return { type, device };
}

function idBase(type: string, device: string): string {
  if (type === 'controller') {
    if (device === 'virtio-scsi') return 'scsi';
    if (device === 'pcie-root-port') return 'port';
    // A plain SCSI controller is not ours: its id must not be taken for that of ours.
    return device === 'scsi' ? 'plain-scsi' : word(device);
  }
  if (type === 'console' && device === 'serial') return 'serial';
  return word(type);
}

function word(text: string): string {
  return /^[a-z]/.exec(text.toLowerCase()) === null
    ? 'device'
    : text
        .toLowerCase()
        .replaceAll(/[^a-z0-9]+/g, '-')
        .slice(0, 40);
}

function textOf(specParams: SpecParams | undefined, key: string): string | undefined {
  const value = specParams !== undefined && Object.hasOwn(specParams, key) ? specParams[key] : undefined;
  return typeof value === 'string' ? value : undefined;
}

/** Of whom oVirt says that it made them itself, though they stand among the others (ResourceType 0). */
const SPECIAL_MANAGED: readonly (readonly [type: string, device?: string])[] = [
  ['controller', 'usb'],
  ['controller', 'virtio-serial'],
  ['controller', 'virtio-scsi'],
  ['sound'],
  ['balloon'],
  ['redir', 'spicevmc'],
  ['smartcard'],
  ['watchdog'],
  ['console'],
  ['rng', 'virtio'],
  ['mdev'],
  ['hostdev'],
  ['tpm'],
];

export function isSpecialManaged(type: string, device: string): boolean {
  return SPECIAL_MANAGED.some(([t, d]) => t === type && (d === undefined || d === device));
}
