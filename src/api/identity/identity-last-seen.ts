/**
 * Collects what a guest saw when it ran last, or sees now, from its identity record and its instance, if there is one.
 * The record follows the template even while the VM is stopped; its history has the earlier values. Pure.
 */
import { interfacesOf } from '#api/devices/attached-interfaces.ts';
import { ephemeralVolumesOf } from '#api/storage/ephemeral-volumes.ts';
import { devicesIn, buildIdentityState, revertChanges } from '#api/identity/identity-changes.ts';
import { readKnownDevices, type KnownDevices } from '#api/devices/known-devices.ts';
import type { LearnedDevice } from '#api/devices/learned-device.ts';
import type { IdentityStatus, VirtualMachineIdentity } from '#api/virtual-machine-identity/kind.ts';
import { IMPORT_CAUSE, IMPORT_SOURCE, rebuildCause } from '#api/virtual-machine-identity/record-state.ts';
import type { VirtualMachineInstance } from '#api/virtual-machine-instance/kind.ts';
import type { VmiSpec } from '#api/virtual-machine-instance/spec.ts';

export interface LastSeen {
  readonly firmware: { readonly uuid?: string; readonly serial?: string };
  /** The canonical machine type; undefined if it is unknown. */
  readonly machine?: string;
  /** The machine type in the spec of the instance, which may be an alias. */
  readonly wanted?: string;
  readonly spec?: VmiSpec;
  /** By name of the interface; `isDerived`: derived from the uid of the VM. */
  readonly macs: ReadonlyMap<string, { readonly mac: string; readonly isDerived: boolean }>;
  /** Rows of the record as they were then, by id; undefined if no devices were learned yet. */
  readonly devices?: ReadonlyMap<string, LearnedDevice>;
  /** The rows of the record now, by id: their addresses are kept. */
  readonly rows: ReadonlyMap<string, LearnedDevice>;
  /** The rows from which the next start places the devices; includes the places of removed devices. */
  readonly known: KnownDevices;
  /** True if the VM was imported and has not run here yet. */
  readonly isImported: boolean;
  /** Volumes that were plugged in for this run only. */
  readonly ephemeral: ReadonlySet<string>;
}

/** Returns undefined if the VM never ran and was not imported. */
export function collectLastSeen(
  record: VirtualMachineIdentity | undefined,
  vmi: VirtualMachineInstance | undefined,
): LastSeen | undefined {
  const { machine, devices } = record?.status ?? {};
  if (devices === undefined && vmi === undefined) return undefined;
  const { uuid, serial } = vmi?.spec.domain.firmware ?? {};
  const known = { uuid: uuid || record?.spec.firmware?.uuid, serial: serial || record?.spec.firmware?.serial };
  const canonical = vmi?.status?.machine?.type || machine?.type;
  const wanted = vmi?.spec.domain.machine?.type;
  const rows = new Map((devices ?? []).map((row) => [row.id, row]));
  return {
    firmware: { ...(known.uuid && { uuid: known.uuid }), ...(known.serial && { serial: known.serial }) },
    ...(canonical && { machine: canonical }),
    ...(wanted && { wanted }),
    ...(vmi && { spec: vmi.spec }),
    macs: macsOf(record, vmi),
    ...(devices && { devices: revertTemplateChanges(record?.status ?? {}) }),
    rows,
    known: readKnownDevices(record?.status ?? {}),
    isImported: record?.status?.learnedAt === undefined && (devices?.length ?? 0) > 0,
    ephemeral: new Set(vmi === undefined ? [] : ephemeralVolumesOf(vmi)),
  };
}

function macsOf(record: VirtualMachineIdentity | undefined, vmi: VirtualMachineInstance | undefined): LastSeen['macs'] {
  const recorded = record?.spec.interfaces ?? [];
  const macs = new Map(
    recorded.map(({ name, macAddress, fromTemplate }) => [name, { mac: macAddress, isDerived: fromTemplate !== true }]),
  );
  for (const { name, macAddress } of vmi === undefined ? [] : interfacesOf(vmi.spec)) {
    if (macAddress) macs.set(name, { mac: macAddress, isDerived: macs.get(name)?.isDerived ?? record === undefined });
  }
  return macs;
}

/** The causes of entries that contain the devices of an import, which the machine had before it came here. */
const IMPORT_CAUSES: ReadonlySet<string> = new Set([IMPORT_CAUSE, rebuildCause(IMPORT_SOURCE)]);

/** Reverts the changes that the template has made to the rows since the devices were last read or imported. */
function revertTemplateChanges({
  history = [],
  learnedAt = '',
  devices,
}: IdentityStatus): ReadonlyMap<string, LearnedDevice> {
  const since = history
    .filter(({ at = '', cause = '' }) => at > learnedAt && !IMPORT_CAUSES.has(cause))
    .flatMap(({ changes = [] }) => changes);
  return devicesIn(revertChanges(buildIdentityState({}, { devices }), since));
}

/** A difference between what a guest saw last and what it will see. */
export interface Difference {
  /** `uuid`, `machine type`, or the id of a device. */
  readonly what: string;
  readonly from: string;
  readonly to: string;
  readonly why: string;
}

export const RESOLVED_AT_START = 'resolved at the start';
/** The value of a device that the guest does not have. */
export const NOT_PRESENT = 'not present';
