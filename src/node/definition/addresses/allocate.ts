/**
 * Gives devices their places: PCI ports, SATA and SCSI units are all numbers from 0 on. Pure, and the heart of the
 * promise that no device moves: what the spec names and what the identity record remembers comes first, only what
 * remains is chosen.
 */
import { invalidValue, type FieldError } from '#kube/field-error.ts';

/** A device that needs a place. */
export interface Want {
  readonly id: string;
  /** For messages: `spec.domain.devices.disks[0]`. */
  readonly field: string;
  /** The place that the spec itself names, and the field that does. */
  readonly pinned?: { readonly place: number; readonly field: string };
}

export interface Places {
  /** For messages: `PCI port`. */
  readonly noun: string;
  readonly count: number;
  /** As people write it. */
  print(place: number): string;
}

export interface Allocation {
  readonly places: ReadonlyMap<string, number>;
  readonly problems: readonly FieldError[];
}

/**
 * `recorded` has the places of all devices that the record lists. Those of devices that are gone are left alone, so
 * that they can come back, as long as others are free. Where a record names a place twice, the first one has it.
 */
export function allocate(wants: readonly Want[], recorded: ReadonlyMap<string, number>, kind: Places): Allocation {
  const places = new Map<string, number>();
  const holders = new Map<number, Want>();
  const problems: FieldError[] = [];
  const take = (want: Want, place: number) => {
    places.set(want.id, place);
    holders.set(place, want);
  };

  for (const want of wants) {
    if (want.pinned === undefined) continue;
    const { place, field } = want.pinned;
    const holder = holders.get(place);
    if (holder === undefined) take(want, place);
    else problems.push(invalidValue(field, kind.print(place), `is the place of ${holder.id}, too`));
  }

  const unpinned = new Map(wants.filter(({ pinned }) => pinned === undefined).map((want) => [want.id, want]));
  for (const [id, place] of recorded) {
    const want = unpinned.get(id);
    if (want === undefined || place >= kind.count) continue;
    const pin = holders.get(place)?.pinned;
    if (pin !== undefined) problems.push(invalidValue(pin.field, kind.print(place), `is the place of ${id}`));
    if (!holders.has(place)) take(want, place);
  }

  const remembered = new Set(recorded.values());
  for (const want of unpinned.values()) {
    if (places.has(want.id)) continue;
    const place = lowestFree(kind.count, holders, remembered) ?? lowestFree(kind.count, holders);
    if (place === undefined) problems.push(full(want, kind));
    else take(want, place);
  }
  return { places, problems };
}

function lowestFree(count: number, held: ReadonlyMap<number, Want>, avoided?: ReadonlySet<number>) {
  for (let place = 0; place < count; place++) {
    if (!held.has(place) && avoided?.has(place) !== true) return place;
  }
  return undefined;
}

function full({ id, field }: Want, { noun, count }: Places): FieldError {
  return invalidValue(field, id, `no ${noun} is left: a guest has ${count}`);
}
