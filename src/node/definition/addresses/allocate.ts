/**
 * Gives devices their places: PCI ports and slots, units of controllers are all numbers. Pure, and the heart of the
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
  /** What it may get where nothing else is said, the best first. */
  readonly choices: readonly number[];
}

export interface Places {
  /** For messages: `PCI port`. */
  readonly noun: string;
  /** As people write it. */
  print(place: number): string;
}

export interface Allocation {
  readonly places: ReadonlyMap<string, number>;
  readonly problems: readonly FieldError[];
}

/**
 * `recorded` has the places of all devices that the record lists. Those of devices that are gone are left alone, so
 * that they can come back, as long as others are free; likewise what is in `reserved`.
 */
export function allocate(
  wants: readonly Want[],
  recorded: ReadonlyMap<string, number>,
  kind: Places,
  reserved: Iterable<number> = [],
): Allocation {
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
    if (want === undefined) continue;
    const holder = holders.get(place);
    if (holder === undefined) take(want, place);
    else problems.push(clash(want, holder, kind.print(place)));
  }

  const remembered = new Set([...recorded.values(), ...reserved]);
  for (const want of unpinned.values()) {
    if (places.has(want.id)) continue;
    const place = bestFree(want.choices, holders, remembered);
    if (place === undefined) problems.push(full(want, kind));
    else take(want, place);
  }
  return { places, problems };
}

/** The first choice that nobody has and nobody had; where there is none, the first that nobody has. */
export function bestFree(
  choices: readonly number[],
  held: { has(place: number): boolean },
  remembered: ReadonlySet<number>,
): number | undefined {
  const free = choices.filter((place) => !held.has(place));
  return free.find((place) => !remembered.has(place)) ?? free[0];
}

/** Neither of the two is moved out of the way of the other. */
function clash(want: Want, { id, pinned }: Want, place: string): FieldError {
  if (pinned !== undefined) return invalidValue(pinned.field, place, `is the place of ${want.id}`);
  return invalidValue(want.field, place, `the record has ${id} in the place of ${want.id}, too`);
}

function full({ id, field, choices }: Want, { noun }: Places): FieldError {
  return invalidValue(field, id, `no ${noun} is left: a guest has ${choices.length}`);
}
