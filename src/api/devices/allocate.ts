/**
 * Assigns places to devices. A place is a number: of a PCI port, a PCI slot or a unit of a controller. No device ever
 * moves: places that the spec names and places from the identity record come first; the remaining devices choose from
 * the rest. Pure.
 */
import { invalidValue, type FieldError } from '#kube/field-error.ts';

/** A device that needs a place. */
export interface PlaceRequest {
  readonly id: string;
  /** For messages: `spec.domain.devices.disks[0]`. */
  readonly field: string;
  /** The place that the spec names, and the field that names it. */
  readonly pinned?: { readonly place: number; readonly field: string };
  /** The places to choose from if neither spec nor record names one, the best first. */
  readonly choices: readonly number[];
}

export interface PlaceKind {
  /** For messages: `PCI port`. */
  readonly noun: string;
  /** Returns the place as users write it. */
  print(place: number): string;
}

interface Allocation {
  readonly places: ReadonlyMap<string, number>;
  readonly problems: readonly FieldError[];
}

/**
 * Assigns a place to each request. `recorded` has the places of all devices in the record. Places of devices that are
 * gone, so that those can come back, and places in `reserved` are only chosen if no other place is free.
 */
export function allocate(
  requests: readonly PlaceRequest[],
  recorded: ReadonlyMap<string, number>,
  kind: PlaceKind,
  reserved: Iterable<number> = [],
): Allocation {
  const places = new Map<string, number>();
  const holders = new Map<number, PlaceRequest>();
  const problems: FieldError[] = [];
  const take = (want: PlaceRequest, place: number) => {
    places.set(want.id, place);
    holders.set(place, want);
  };

  for (const want of requests) {
    if (want.pinned === undefined) continue;
    const { place, field } = want.pinned;
    const holder = holders.get(place);
    if (holder === undefined) take(want, place);
    else problems.push(invalidValue(field, kind.print(place), `is already the address of ${holder.id}`));
  }

  const unpinned = new Map(requests.filter(({ pinned }) => pinned === undefined).map((want) => [want.id, want]));
  for (const [id, place] of recorded) {
    const want = unpinned.get(id);
    if (want === undefined) continue;
    const holder = holders.get(place);
    if (holder === undefined) take(want, place);
    else problems.push(conflictError(want, holder, kind.print(place)));
  }

  const avoided = new Set([...recorded.values(), ...reserved]);
  for (const want of unpinned.values()) {
    if (places.has(want.id)) continue;
    const place = chooseFree(want.choices, holders, avoided);
    if (place === undefined) problems.push(exhaustedError(want, kind));
    else take(want, place);
  }
  return { places, problems };
}

/** Returns the first choice that is neither occupied nor avoided, or else the first one that is not occupied. */
export function chooseFree(
  choices: readonly number[],
  occupied: { has(place: number): boolean },
  avoided: ReadonlySet<number>,
): number | undefined {
  const free = choices.filter((place) => !occupied.has(place));
  return free.find((place) => !avoided.has(place)) ?? free[0];
}

/** Returns the error for two devices with the same place. Neither of them is moved. */
function conflictError(request: PlaceRequest, { id, pinned }: PlaceRequest, place: string): FieldError {
  if (pinned !== undefined) return invalidValue(pinned.field, place, `is the address of ${request.id}`);
  return invalidValue(request.field, place, `the record has both ${id} and ${request.id} at this address`);
}

function exhaustedError({ id, field, choices }: PlaceRequest, { noun }: PlaceKind): FieldError {
  return invalidValue(field, id, `no ${noun} is free: a guest has ${choices.length}`);
}
