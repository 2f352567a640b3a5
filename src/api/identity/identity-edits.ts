/**
 * Notes on a VM: who last changed each identity-relevant part of its template, and when. Admission writes them
 * (admission/identity-edits.ts); controllers/device-map reads them to record in the history of the record who made a
 * change. Pure.
 *
 *   created                        the VM itself
 *   firmware.uuid, firmware.serial, machine.type, interfaces.<name>.macAddress, interfaces.<name>.addresses
 *   bootOrder                      the boot order of all disks and interfaces
 *   disks.<name>, interfaces.<name>   a disk or an interface was added, removed or changed
 *   devices                        any other device, and the firmware
 */
import { addressesField, macField } from '#api/identity/identity-changes.ts';
import { requestedAddressesIn } from '#api/network/requested-addresses.ts';
import { formatPointer } from '#kube/patches/json-pointer.ts';
import { isRecord, type KubeObject } from '#kube/meta.ts';
import type { JsonPatchOperation } from '#api/verbs/verb.ts';

/** On VMs: the notes, as JSON. Only admission sets it. */
export const IDENTITY_EDITS_ANNOTATION = 'identity.selfsame.io/edits';
/**
 * Names the user on whose behalf one of our components writes, as JSON (Edit). Admission removes it: it is never
 * stored.
 */
export const ACTING_FOR_ANNOTATION = 'identity.selfsame.io/acting-for';

export const MAX_EDITS = 64;
const MAX_TEXT = 256;

export interface Edit {
  /** RFC 3339. */
  readonly at: string;
  /** The user; absent if one of our own components made the change. */
  readonly by?: string;
  /** Absent if a user edited the VM. */
  readonly cause?: string;
}

export type Edits = ReadonlyMap<string, Edit>;

/** Returns the notes by part; none if they cannot be read. */
export function readEdits(text: unknown): Edits {
  const edits = new Map<string, Edit>();
  for (const [part, value] of Object.entries(parse(text) ?? {})) {
    const edit = readEdit(value);
    if (edit !== undefined && edits.size < MAX_EDITS) edits.set(part, edit);
  }
  return edits;
}

/** Returns the user on whose behalf a write is made, or undefined if the annotation is absent. */
export function readActingFor(text: unknown): Pick<Edit, 'by' | 'cause'> | undefined {
  const value = parse(text);
  return value === undefined ? undefined : readAuthor(value);
}

/** Builds the part of a VM patch by which one of our components names the user on whose behalf it writes. */
export function actingForPatch({ metadata }: KubeObject, edit: Pick<Edit, 'by' | 'cause'>): JsonPatchOperation[] {
  const text = JSON.stringify(readAuthor({ ...edit }));
  if (metadata.annotations !== undefined) {
    return [{ op: 'add', path: formatPointer(['metadata', 'annotations', ACTING_FOR_ANNOTATION]), value: text }];
  }
  const path = '/metadata/annotations';
  return [
    { op: 'test', path, value: null },
    { op: 'add', path, value: { [ACTING_FOR_ANNOTATION]: text } },
  ];
}

/** Returns the notes as text, without the oldest if there are too many; undefined if there are none. */
export function formatEdits(edits: Edits): string | undefined {
  if (edits.size === 0) return undefined;
  const newest = [...edits].toSorted(([, a], [, b]) => (a.at < b.at ? 1 : a.at > b.at ? -1 : 0)).slice(0, MAX_EDITS);
  const kept = new Set(newest.map(([part]) => part));
  return JSON.stringify(Object.fromEntries([...edits].filter(([part]) => kept.has(part))));
}

function readEdit(value: unknown): Edit | undefined {
  if (!isRecord(value) || typeof value['at'] !== 'string') return undefined;
  return { at: value['at'], ...readAuthor(value) };
}

function readAuthor({ by, cause }: Record<string, unknown>): Pick<Edit, 'by' | 'cause'> {
  return {
    ...(typeof by === 'string' && by !== '' && { by: by.slice(0, MAX_TEXT) }),
    ...(typeof cause === 'string' && cause !== '' && { cause: cause.slice(0, MAX_TEXT) }),
  };
}

function parse(text: unknown): Record<string, unknown> | undefined {
  if (typeof text !== 'string') return undefined;
  try {
    const value: unknown = JSON.parse(text);
    return isRecord(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

/** Returns the values of the parts of a VM's template. The VM may not have been validated yet. */
export function identityParts(vm: unknown): Map<string, unknown> {
  const domain = valueAt(vm, 'spec', 'template', 'spec', 'domain');
  const { disks, interfaces, ...others } = recordOf(valueAt(domain, 'devices'));
  const { uuid, serial, ...firmware } = recordOf(valueAt(domain, 'firmware'));
  const parts = new Map<string, unknown>();
  const set = (part: string, value: unknown) => {
    if (value !== undefined && value !== null && value !== '') parts.set(part, value);
  };
  set('firmware.uuid', uuid);
  set('firmware.serial', serial);
  set('machine.type', valueAt(domain, 'machine', 'type'));
  set('devices', { ...others, bootloader: firmware['bootloader'] });
  const order: unknown[] = [];
  for (const disk of namedIn(disks)) {
    const { bootOrder, ...rest } = disk;
    set(`disks.${disk.name}`, rest);
    order.push([disk.name, bootOrder]);
  }
  for (const nic of namedIn(interfaces)) {
    const { bootOrder, macAddress, ...rest } = nic;
    set(`interfaces.${nic.name}`, rest);
    set(macField(nic.name), macAddress);
    if (bootOrder !== undefined) order.push([nic.name, bootOrder]);
  }
  if (order.length > 0) set('bootOrder', order);
  for (const at of [['metadata'], ['spec', 'template', 'metadata']]) {
    const requested = requestedAddressesIn(valueAt(vm, ...at, 'annotations'));
    for (const [name, addresses] of Object.entries(requested)) set(addressesField(name), addresses);
  }
  return parts;
}

function namedIn(list: unknown): (Record<string, unknown> & { readonly name: string })[] {
  if (!Array.isArray(list)) return [];
  return list.filter(
    (item): item is Record<string, unknown> & { name: string } => isRecord(item) && typeof item['name'] === 'string',
  );
}

const recordOf = (value: unknown) => (isRecord(value) ? value : {});

function valueAt(value: unknown, ...path: readonly string[]): unknown {
  let current = value;
  for (const field of path) current = isRecord(current) ? current[field] : undefined;
  return current;
}
