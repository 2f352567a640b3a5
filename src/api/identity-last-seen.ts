/**
 * What a guest saw when it ran last, or sees now: gathered from its identity record and, where there is one, its instance.
 * The record follows the template also while the VM is stopped; its history tells what it was before. Pure.
 */
import { interfacesOf } from '#api/attached-interfaces.ts';
import { ephemeralVolumesOf } from '#api/ephemeral-volumes.ts';
import { devicesIn, identityState, revertChanges } from '#api/identity-changes.ts';
import type { LearnedDevice } from '#api/learned-device.ts';
import type { IdentityStatus, VirtualMachineIdentity } from '#api/virtual-machine-identity/kind.ts';
import type { VirtualMachineInstance } from '#api/virtual-machine-instance/kind.ts';
import type { VmiSpec } from '#api/virtual-machine-instance/spec.ts';

export interface LastSeen {
  readonly firmware: { readonly uuid?: string; readonly serial?: string };
  /** The canonical machine type; undefined where it is unknown. */
  readonly machine?: string;
  /** What the instance asked for, which may be an alias. */
  readonly wanted?: string;
  readonly spec?: VmiSpec;
  /** By the name of the interface. */
  readonly macs: ReadonlyMap<string, { readonly mac: string; readonly made: boolean }>;
  /** Rows of the record as they were then, by id; undefined where nothing was learned yet. */
  readonly devices?: ReadonlyMap<string, LearnedDevice>;
  /** The same rows as the record has them now: whose places are kept. */
  readonly rows: ReadonlyMap<string, LearnedDevice>;
  /** It was brought from another manager, and has not run here yet. */
  readonly imported: boolean;
  /** Volumes that were plugged in for this run only. */
  readonly ephemeral: ReadonlySet<string>;
}

/** Undefined where it never ran, and was not imported either. */
export function lastSeen(
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
    ...(devices && { devices: before(record?.status ?? {}) }),
    rows,
    imported: record?.status?.learnedAt === undefined && (devices?.length ?? 0) > 0,
    ephemeral: new Set(vmi === undefined ? [] : ephemeralVolumesOf(vmi)),
  };
}

function macsOf(record: VirtualMachineIdentity | undefined, vmi: VirtualMachineInstance | undefined): LastSeen['macs'] {
  const recorded = record?.spec.interfaces ?? [];
  const macs = new Map(
    recorded.map(({ name, macAddress, fromTemplate }) => [name, { mac: macAddress, made: fromTemplate !== true }]),
  );
  for (const { name, macAddress } of vmi === undefined ? [] : interfacesOf(vmi.spec)) {
    if (macAddress) macs.set(name, { mac: macAddress, made: macs.get(name)?.made ?? record === undefined });
  }
  return macs;
}

/** Takes back what the template has done to the rows since the guest was last looked at. */
function before({ history = [], learnedAt = '', devices }: IdentityStatus): ReadonlyMap<string, LearnedDevice> {
  const since = history.filter(({ at = '' }) => at > learnedAt).flatMap(({ changes = [] }) => changes);
  return devicesIn(revertChanges(identityState({}, { devices }), since));
}
