/**
 * The cause of a change of an identity record. What the template of the VM asks for is caused by whoever last edited that
 * part of it, which admission has noted on the VM (api/identity-edits.ts). Everything else is caused by what was going on:
 * a start, a migration, an import. Pure.
 */
import { chipsetOf } from '#api/chipset.ts';
import { devicePartOf, macField } from '#api/identity-changes.ts';
import { type Edit, type Edits, IDENTITY_EDITS_ANNOTATION, identityParts, readEdits } from '#api/identity-edits.ts';
import type { Cause } from '#api/identity-history.ts';
import { importedDevicesOf } from '#api/imported-devices.ts';
import { LEGACY_RULE, legacyUuid } from '#api/legacy-uuid.ts';
import type { VirtualMachine } from '#api/virtual-machine/kind.ts';
import type { HistoryEntry, IdentityChange } from '#api/virtual-machine-identity/kind.ts';
import {
  acceptsNewLayout,
  FROM_GUEST,
  FROM_IMPORT,
  isRecordLost,
  lastRecordUid,
  rebuiltFrom,
} from '#api/virtual-machine-identity/record-state.ts';
import { type DeviceMapWorld, ownInstance } from '#controllers/device-map/device-map-world.ts';
import type { Stored } from '#kube/meta.ts';

export const EDIT = 'edit of the VM';
export const FIRST_START = 'first start';
export const IMPORT = 'the import of the VM';
const HOTPLUG = 'hotplug for this run of the VM';
const LIST_CHANGED = 'a change of specialManagedDevices';
const NEWLY_RECORDED = 'recorded for the first time';

export interface CauseContext {
  readonly vm: Stored<VirtualMachine>;
  /** What the record held before. */
  readonly history: readonly HistoryEntry[];
  /** Whether nothing was recorded before. */
  readonly isNew: boolean;
  /** Whether no device was on record before: then all of them have one cause. */
  readonly isFirstSeen: boolean;
  /** What was going on: a start, or a change of a guest that ran. */
  readonly occasion: Cause;
  /** The uid of the instance that runs. */
  readonly instance?: string | undefined;
  /** The cause of what comes back into a lost record. */
  readonly loss?: Cause | undefined;
  /** The claim to which a migration has handed the state over. */
  readonly handOver?: { readonly claim: string; readonly migration: string } | undefined;
}

const MANAGED: ReadonlySet<string> = new Set(['managed', 'specialManaged']);
const isClassification = (change: IdentityChange) => devicePartOf(change)?.name === 'specialManaged';
const AS_FIRST_SEEN: ReadonlySet<string> = new Set(['machine.type', 'stateClaim']);

export type CauseOf = (change: IdentityChange) => Cause;

/** Returns the function that finds the cause of each of the changes of one write. */
export function causesOf(context: CauseContext, changes: readonly IdentityChange[]): CauseOf {
  const { vm, handOver } = context;
  const edits = readEdits(vm.metadata.annotations?.[IDENTITY_EDITS_ANNOTATION]);
  const isImport = context.isNew && context.occasion.cause === IMPORT;
  const occasion = isImport ? firstCause(vm, edits) : context.occasion;
  const known = { ...context, occasion, edits, parts: identityParts(vm) };
  const chipset = changes.find(isChipsetChange);
  const chipsetCause = chipset && machineCause(known, chipset);
  const classified = new Set(changes.filter(isClassification).map((change) => devicePartOf(change)?.id));
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

/** Other code recognises a start by the uid in `instance`; the text is for people. */
export const startOf = (uid: string): Cause => ({ cause: `the start of instance ${uid}`, instance: uid });

interface Known extends CauseContext {
  readonly edits: Edits;
  /** What the template says, by part. */
  readonly parts: ReadonlyMap<string, unknown>;
}

/**
 * Returns the cause of all that comes back into a record that was lost; undefined where it was not lost, or where nothing
 * is known yet that it could be rebuilt from.
 */
export function causeOfLoss(world: DeviceMapWorld, vm: Pick<VirtualMachine, 'metadata' | 'status'>): Cause | undefined {
  if (!isRecordLost(vm, world.identity)) return undefined;
  const instance = ownInstance(world)?.metadata.uid;
  if (acceptsNewLayout(vm)) {
    const cause = `a new layout was accepted after the loss of record ${lastRecordUid(vm)}`;
    return { cause, ...(instance !== undefined && { instance }) };
  }
  if (instance !== undefined) return { cause: rebuiltFrom(`${FROM_GUEST}, instance ${instance}`) };
  return importedDevicesOf(vm) === undefined ? undefined : { cause: rebuiltFrom(FROM_IMPORT) };
}

/** Firmware, SMBIOS strings and MAC addresses: they are in the spec of the record, which follows the template. */
function specCause(known: Known, change: IdentityChange): Cause {
  const { vm, edits, history, isNew, occasion, loss } = known;
  const { field, from, to } = change;
  if (isNew && loss !== undefined) return loss;
  const edit = newest(edits.get(field), field.startsWith('interfaces.') ? edits.get(nicPart(field)) : undefined);
  if (edit !== undefined && (isNew || isNews(edit, history, field))) return causeOfEdit(edit);
  if (field === 'firmware.uuid' && to === legacyUuid(vm.metadata.name)) return { cause: LEGACY_RULE };
  if (isNew) return firstCause(vm, edits);
  // Older versions did not record what the template names itself.
  if (field.startsWith('interfaces.') && from === undefined) return { cause: NEWLY_RECORDED };
  return field.startsWith('smbios.') ? occasion : { cause: EDIT };
}

function firstCause(vm: Stored<VirtualMachine>, edits: Edits): Cause {
  const created = edits.get('created');
  const cause = importedDevicesOf(vm) === undefined ? FIRST_START : IMPORT;
  return { cause, ...(created?.by !== undefined && { by: created.by }) };
}

/** Whether a VM keeps state is in the part `devices` of its template. */
function stateCause({ edits, history, occasion, instance }: Known, { field }: IdentityChange): Cause {
  const edit = edits.get('devices');
  if (edit !== undefined && isNews(edit, history, field)) return causeOfEdit(edit);
  return instance === undefined ? occasion : startOf(instance);
}

/** An alias may stand for another type at each start: then an edit counts only where it is news. */
function machineCause({ edits, parts, history, occasion }: Known, { field, to }: IdentityChange): Cause {
  const edit = edits.get(field);
  const isFromEdit = edit !== undefined && (parts.get(field) === to || isNews(edit, history, field));
  return isFromEdit ? causeOfEdit(edit) : occasion;
}

function isChipsetChange({ field, from, to }: IdentityChange): boolean {
  if (field !== 'machine.type' || typeof from !== 'string' || typeof to !== 'string') return false;
  const [before, after] = [chipsetOf(from), chipsetOf(to)];
  return before !== undefined && after !== undefined && before !== after;
}

/** Returns undefined where no edit asked for the change. */
function deviceCause(known: Known, change: IdentityChange, id: string): Cause | undefined {
  const { edits, parts, history, occasion } = known;
  const part = partOf(id);
  const name = devicePartOf(change)?.name;
  if (name === 'bootOrder') {
    const edit = newest(edits.get('bootOrder'), part === undefined ? undefined : edits.get(part));
    return edit !== undefined && isNews(edit, history, change.field) ? causeOfEdit(edit) : undefined;
  }
  if (part === undefined) {
    const edit = edits.get('devices');
    return edit !== undefined && isNews(edit, history, `devices.${id}`) ? causeOfEdit(edit) : undefined;
  }
  const edit = edits.get(part);
  // Admission sees no change of an instance: what the template does not know was plugged in by a verb.
  if (edit === undefined && !parts.has(part) && isHotplug(change, occasion)) return { cause: HOTPLUG };
  if (edit === undefined) return undefined;
  const followsTemplate = name === undefined || name === 'plugged';
  return followsTemplate || isNews(edit, history, `devices.${id}`) ? causeOfEdit(edit) : undefined;
}

const isHotplug = ({ field }: IdentityChange, { instance }: Cause) =>
  field.startsWith('devices.disk-') && instance === undefined;

function partOf(id: string): string | undefined {
  if (id.startsWith('disk-')) return `disks.${id.slice('disk-'.length)}`;
  return id.startsWith('nic-') ? `interfaces.${id.slice('nic-'.length)}` : undefined;
}

const nicPart = (field: string) => field.slice(0, -macField('').length + 'interfaces.'.length);

function causeOfEdit({ by, cause }: Edit): Cause {
  return { cause: cause ?? EDIT, ...(by !== undefined && { by }) };
}

/** Reports whether the history tells of no change of the field, or of a device, since the edit. */
function isNews({ at }: Edit, history: readonly HistoryEntry[], field: string): boolean {
  const isOfField = (one: string) => one === field || one.startsWith(`${field}.`);
  const last = history.findLast(({ changes = [] }) => changes.some((change) => isOfField(change.field)));
  return at >= ((last ?? history[0])?.at ?? '');
}

function newest(...edits: readonly (Edit | undefined)[]): Edit | undefined {
  const [first] = edits.filter((edit) => edit !== undefined).toSorted((a, b) => (a.at < b.at ? 1 : -1));
  return first;
}
