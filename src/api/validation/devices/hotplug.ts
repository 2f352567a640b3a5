/**
 * Checks changes to a running instance: hotpluggable volumes can be added and removed with their disks, interfaces can
 * be added with their networks, and their state can change. Everything else is immutable, including the order of lists.
 * The result is validated like any other spec.
 */
import { interfacesOf, networksOf } from '#api/devices/attached-interfaces.ts';
import type { Interface } from '#api/domain/interface.ts';
import type { Named } from '#api/validation/names.ts';
import type { VmiSpec } from '#api/virtual-machine-instance/spec.ts';
import { deepEqual } from '#kube/deep.ts';
import { forbiddenField, type FieldError } from '#kube/field-error.ts';

export const RESTRICTED = 'update of VMI object is restricted';

/** Returns no errors if only permitted fields differ. */
export function checkHotplug(spec: VmiSpec, old: VmiSpec): FieldError[] {
  const allowed =
    deepEqual(withoutPluggable(spec), withoutPluggable(old)) &&
    onlyHotpluggableDiffer(disksOf(spec), disksOf(old), listHotpluggable(spec, old)) &&
    onlyHotpluggableDiffer(spec.volumes ?? [], old.volumes ?? [], listHotpluggable(spec, old)) &&
    onlyAdded(interfacesOf(spec).map(withoutState), interfacesOf(old).map(withoutState)) &&
    onlyAdded(networksOf(spec), networksOf(old)) &&
    !addsBootInterface(spec, old);
  return allowed ? [] : [forbiddenField('spec', RESTRICTED)];
}

function withoutPluggable(spec: VmiSpec): unknown {
  const { volumes: _volumes, networks: _networks, domain, ...rest } = spec;
  const { devices, ...ofDomain } = domain;
  const { disks: _disks, interfaces: _interfaces, ...ofDevices } = devices ?? {};
  return { rest, ofDomain, ofDevices };
}

const disksOf = ({ domain }: VmiSpec) => domain.devices?.disks ?? [];

/** Returns the names of volumes that may be added or removed: hotpluggable in every spec that has them. */
function listHotpluggable(...specs: readonly VmiSpec[]): ReadonlySet<string> {
  const volumes = specs.flatMap((spec) => spec.volumes ?? []);
  const fixed = volumes.filter(({ persistentVolumeClaim: claim }) => claim?.hotpluggable !== true);
  return new Set(volumes.map(({ name }) => name)).difference(new Set(fixed.map(({ name }) => name)));
}

/** Reports whether items in both lists are equal and in the same order, and all others are in `hotpluggable`. */
function onlyHotpluggableDiffer<T extends Named>(
  now: readonly T[],
  before: readonly T[],
  hotpluggable: ReadonlySet<string>,
): boolean {
  const [names, namesBefore] = [namesOf(now), namesOf(before)];
  const kept = (list: readonly T[]) => list.filter(({ name }) => names.has(name) && namesBefore.has(name));
  const changed = names.symmetricDifference(namesBefore);
  return deepEqual(kept(now), kept(before)) && changed.isSubsetOf(hotpluggable);
}

function onlyAdded<T extends Named>(now: readonly T[], before: readonly T[]): boolean {
  return namesOf(before).isSubsetOf(namesOf(now)) && onlyHotpluggableDiffer(now, before, namesOf(now));
}

const namesOf = (items: readonly Named[]) => new Set(items.map(({ name }) => name));

function withoutState({ state: _state, ...nic }: Interface): Interface {
  return nic;
}

/** Reports whether a new interface has a boot order. The boot order is fixed when the guest starts. */
function addsBootInterface(spec: VmiSpec, old: VmiSpec): boolean {
  const before = namesOf(interfacesOf(old));
  return interfacesOf(spec).some(({ name, bootOrder }) => bootOrder !== undefined && !before.has(name));
}
