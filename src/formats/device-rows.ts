/**
 * Converts devices of other managers to our rows: with our names for types and devices, and with the ids of our own
 * guests (scsi0, rp3, balloon0), so that the next start finds their addresses. Pure.
 */
import type { DeviceAddress, LearnedDevice, SpecParams } from '#api/devices/learned-device.ts';

export interface ForeignDevice {
  readonly type: string;
  readonly device: string;
  readonly address?: DeviceAddress;
  readonly bootOrder?: number;
  readonly managed?: boolean;
  readonly plugged?: boolean;
  readonly readonly?: boolean;
  readonly specParams?: SpecParams;
  /** Our own id, if we wrote the file. */
  readonly id?: string;
  readonly name?: string;
}

/** Restrictive, because ids become part of QEMU options. */
const ID = /^[a-z0-9][A-Za-z0-9._-]{0,99}$/;
const ROOT_PORTS = 32;

export function isDeviceId(text: string): boolean {
  return ID.test(text);
}

/** Collects rows and gives an unused id to devices without one. */
export class DeviceRows {
  readonly rows: LearnedDevice[] = [];
  readonly #taken = new Set<string>();

  /** Adds a row with its id: a disk or interface, whose name is unique, or a row of our own files. */
  add(row: LearnedDevice): void {
    this.#taken.add(row.id);
    this.rows.push(compactRow(row));
  }

  addForeign(foreign: ForeignDevice): void {
    const { type, device } = normalizeNames(foreign);
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
 * Returns the row without fields that have their default value. A special managed device becomes unmanaged, because
 * other clusters may not list it.
 */
export function compactRow(row: LearnedDevice): LearnedDevice {
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

function normalizeNames({ type, device, specParams }: ForeignDevice): { type: string; device: string } {
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
    // Not scsi0, which is the id of our virtio-scsi controller.
    return device === 'scsi' ? 'plain-scsi' : toIdWord(device);
  }
  if (type === 'console' && device === 'serial') return 'serial';
  return toIdWord(type);
}

function toIdWord(text: string): string {
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

/** Devices that oVirt manages although their ResourceType is 0 (other). */
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
