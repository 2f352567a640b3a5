/**
 * Finds the cause of a change of an identity record. A change that the template requests is caused by the user who last
 * edited that part of it, which admission records on the VM (api/identity/identity-edits.ts). Other changes are caused by the
 * event during which they were found: a start, a migration or an import. Pure.
 */
import { chipsetOf } from '#api/devices/chipset.ts';
import { devicePartOf } from '#api/identity/identity-changes.ts';
import {
  type Edit,
  type Edits,
  IDENTITY_EDITS_ANNOTATION,
  identityParts,
  readEdits,
} from '#api/identity/identity-edits.ts';
import type { ChangeCause } from '#api/identity/identity-history.ts';
import { importedDevicesOf } from '#api/devices/imported-devices.ts';
import { LEGACY_RULE, legacyUuid } from '#api/identity/legacy-uuid.ts';
import type { VirtualMachine } from '#api/virtual-machine/kind.ts';
import type { HistoryEntry, IdentityChange } from '#api/virtual-machine-identity/kind.ts';
import {
  acceptsNewLayout,
  GUEST_SOURCE,
  IMPORT_CAUSE,
  IMPORT_SOURCE,
  isRecordLost,
  lastRecordUid,
  rebuildCause,
} from '#api/virtual-machine-identity/record-state.ts';
import { type DeviceMapWorld, ownInstance } from '#controllers/device-map/device-map-world.ts';
import type { Stored } from '#kube/meta.ts';

export const EDIT = 'edit of the VM';
const FIRST_START = 'first start';
const HOTPLUG = 'hotplug for this run of the VM';
const LIST_CHANGED = 'a change of specialManagedDevices';
const NEWLY_RECORDED = 'recorded for the first time';

export interface CauseContext {
  readonly vm: Stored<VirtualMachine>;
  /** The history of the record before the change. */
  readonly history: readonly HistoryEntry[];
  /** True if nothing was recorded before. */
  readonly isNew: boolean;
  /** True if no device was recorded before: then all devices have the same cause. */
  readonly isFirstSeen: boolean;
  /** The event during which the change was found: a start, or a change of the running guest. */
  readonly occasion: ChangeCause;
  /** The uid of the running instance. */
  readonly instance?: string | undefined;
  /** The cause of everything that is written to a lost record again. */
  readonly loss?: ChangeCause | undefined;
  /** The claim to which a migration has handed the state over. */
  readonly handOver?: { readonly claim: string; readonly migration: string } | undefined;
}

const MANAGED: ReadonlySet<string> = new Set(['managed', 'specialManaged']);
const isReclassification = (change: IdentityChange) => devicePartOf(change)?.name === 'specialManaged';
const AS_FIRST_SEEN: ReadonlySet<string> = new Set(['machine.type', 'stateClaim']);

type CauseFinder = (change: IdentityChange) => ChangeCause;

/** Returns the function that finds the cause of each of the changes of one write. */
export function createCauseFinder(context: CauseContext, changes: readonly IdentityChange[]): CauseFinder {
  const { vm, handOver } = context;
  const edits = readEdits(vm.metadata.annotations?.[IDENTITY_EDITS_ANNOTATION]);
  const isImport = context.isNew && context.occasion.cause === IMPORT_CAUSE;
  const occasion = isImport ? firstCause(vm, edits) : context.occasion;
  const known = { ...context, occasion, edits, parts: identityParts(vm) };
  const chipset = changes.find(isChipsetChange);
  const chipsetCause = chipset && machineCause(known, chipset);
  const classified = new Set(changes.filter(isReclassification).map((change) => devicePartOf(change)?.id));
  return (change) => {
    const { field, to } = change;
    const device = devicePartOf(change);
    if (context.isFirstSeen && (device !== undefined || AS_FIRST_SEEN.has(field))) return occasion;
    if (device !== undefined) {
      if (classified.has(device.id) && MANAGED.has(device.name ?? '')) return { cause: LIST_CHANGED };
      if (chipsetCause !== undefined && device.name === 'address') return chipsetCause;
      return deviceCause(known, change, device.id) ?? occasion;
    }
    if (field === 'machine.type') return machineCause(known, change);
    if (field === 'stateClaim') {
      const isMoved = handOver !== undefined && handOver.claim === to;
      return isMoved ? { cause: `migration ${handOver.migration}` } : stateCause(known, change);
    }
    return specCause(known, change);
  };
}

/** Returns the cause for a start. Code recognises a start by `instance`, not by the text. */
export const startCause = (uid: string): ChangeCause => ({ cause: `the start of instance ${uid}`, instance: uid });

interface CauseInputs extends CauseContext {
  readonly edits: Edits;
  /** The values of the template, by part. */
  readonly parts: ReadonlyMap<string, unknown>;
}

/**
 * Returns the cause of everything that is written to a lost record again, or undefined if the record is not lost or no
 * source for it is known yet.
 */
export function lossCause(
  world: DeviceMapWorld,
  vm: Pick<VirtualMachine, 'metadata' | 'status'>,
): ChangeCause | undefined {
  if (!isRecordLost(vm, world.identity)) return undefined;
  const instance = ownInstance(world)?.metadata.uid;
  if (acceptsNewLayout(vm)) {
    const cause = `a new layout was accepted after the loss of record ${lastRecordUid(vm)}`;
    return { cause, ...(instance !== undefined && { instance }) };
  }
  if (instance !== undefined) return { cause: rebuildCause(`${GUEST_SOURCE}, instance ${instance}`) };
  return importedDevicesOf(vm) === undefined ? undefined : { cause: rebuildCause(IMPORT_SOURCE) };
}

/** Returns the cause of a change of firmware, SMBIOS strings, MAC or IP addresses, which the spec of the record has. */
function specCause(known: CauseInputs, change: IdentityChange): ChangeCause {
  const { vm, edits, history, isNew, occasion, loss, instance } = known;
  const { field, from, to } = change;
  if (isNew && loss !== undefined) return loss;
  const edit = newest(edits.get(field), field.startsWith('interfaces.') ? edits.get(nicPart(field)) : undefined);
  if (edit !== undefined && (isNew || isNewerThanHistory(edit, history, field))) return editCause(edit);
  if (field === 'firmware.uuid' && to === legacyUuid(vm.metadata.name)) return { cause: LEGACY_RULE };
  if (isNew) return firstCause(vm, edits);
  // They are assigned when an instance starts.
  if (field.endsWith('.addresses') && instance !== undefined) return startCause(instance);
  // Older versions did not record MAC addresses of the template.
  if (field.startsWith('interfaces.') && from === undefined) return { cause: NEWLY_RECORDED };
  return field.startsWith('smbios.') ? occasion : { cause: EDIT };
}

function firstCause(vm: Stored<VirtualMachine>, edits: Edits): ChangeCause {
  const created = edits.get('created');
  const cause = importedDevicesOf(vm) === undefined ? FIRST_START : IMPORT_CAUSE;
  return { cause, ...(created?.by !== undefined && { by: created.by }) };
}

/** Returns the cause of a new state claim. The part `devices` of the template decides whether a VM has state. */
function stateCause({ edits, history, occasion, instance }: CauseInputs, { field }: IdentityChange): ChangeCause {
  const edit = edits.get('devices');
  if (edit !== undefined && isNewerThanHistory(edit, history, field)) return editCause(edit);
  return instance === undefined ? occasion : startCause(instance);
}

/** An alias may resolve to another type at each start; then an edit counts only if it is newer than the last change. */
function machineCause({ edits, parts, history, occasion }: CauseInputs, { field, to }: IdentityChange): ChangeCause {
  const edit = edits.get(field);
  const isFromEdit = edit !== undefined && (parts.get(field) === to || isNewerThanHistory(edit, history, field));
  return isFromEdit ? editCause(edit) : occasion;
}

function isChipsetChange({ field, from, to }: IdentityChange): boolean {
  if (field !== 'machine.type' || typeof from !== 'string' || typeof to !== 'string') return false;
  const [before, after] = [chipsetOf(from), chipsetOf(to)];
  return before !== undefined && after !== undefined && before !== after;
}

/** Returns the cause of a change of a device, or undefined if no edit requested it. */
function deviceCause(known: CauseInputs, change: IdentityChange, id: string): ChangeCause | undefined {
  const { edits, parts, history, occasion } = known;
  const part = partOf(id);
  const name = devicePartOf(change)?.name;
  if (name === 'bootOrder') {
    const edit = newest(edits.get('bootOrder'), part === undefined ? undefined : edits.get(part));
    return edit !== undefined && isNewerThanHistory(edit, history, change.field) ? editCause(edit) : undefined;
  }
  if (part === undefined) {
    const edit = edits.get('devices');
    return edit !== undefined && isNewerThanHistory(edit, history, `devices.${id}`) ? editCause(edit) : undefined;
  }
  const edit = edits.get(part);
  // Admission does not record changes of instances: a device that the template does not have was hotplugged.
  if (edit === undefined && !parts.has(part) && isHotplug(change, occasion)) return { cause: HOTPLUG };
  if (edit === undefined) return undefined;
  const followsTemplate = name === undefined || name === 'plugged';
  return followsTemplate || isNewerThanHistory(edit, history, `devices.${id}`) ? editCause(edit) : undefined;
}

const isHotplug = ({ field }: IdentityChange, { instance }: ChangeCause) =>
  field.startsWith('devices.disk-') && instance === undefined;

function partOf(id: string): string | undefined {
  if (id.startsWith('disk-')) return `disks.${id.slice('disk-'.length)}`;
  return id.startsWith('nic-') ? `interfaces.${id.slice('nic-'.length)}` : undefined;
}

/** Returns the part of the interface of a field such as interfaces.<name>.macAddress. */
const nicPart = (field: string) => field.slice(0, field.lastIndexOf('.'));

function editCause({ by, cause }: Edit): ChangeCause {
  return { cause: cause ?? EDIT, ...(by !== undefined && { by }) };
}

/** Reports whether the history has no change of the field, or of parts of it, since the edit. */
function isNewerThanHistory({ at }: Edit, history: readonly HistoryEntry[], field: string): boolean {
  const isOfField = (one: string) => one === field || one.startsWith(`${field}.`);
  const last = history.findLast(({ changes = [] }) => changes.some((change) => isOfField(change.field)));
  return at >= ((last ?? history[0])?.at ?? '');
}

function newest(...edits: readonly (Edit | undefined)[]): Edit | undefined {
  const [first] = edits.filter((edit) => edit !== undefined).toSorted((a, b) => (a.at < b.at ? 1 : -1));
  return first;
}
