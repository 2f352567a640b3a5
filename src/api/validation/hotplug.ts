/**
 * What may change of an instance that runs: hotpluggable volumes come and go with their disks, interfaces come with
 * their networks, and are absent or not. Everything else stays as it is, in the order that it has. Whether the result
 * is valid in itself is judged as for any spec.
 */
import { interfacesOf, networksOf } from '#api/attached-interfaces.ts';
import type { Interface } from '#api/domain/interface.ts';
import type { Named } from '#api/validation/names.ts';
import type { VmiSpec } from '#api/virtual-machine-instance/spec.ts';
import { deepEqual } from '#kube/deep.ts';
import { forbiddenField, type FieldError } from '#kube/field-error.ts';

export const RESTRICTED = 'update of VMI object is restricted';

/** Nothing where all that differs may differ. */
export function checkHotplug(spec: VmiSpec, old: VmiSpec): FieldError[] {
  const allowed =
    deepEqual(withoutPluggable(spec), withoutPluggable(old)) &&
    comeAndGo(disksOf(spec), disksOf(old), hotpluggable(spec, old)) &&
    comeAndGo(spec.volumes ?? [], old.volumes ?? [], hotpluggable(spec, old)) &&
    onlyCome(interfacesOf(spec).map(withoutState), interfacesOf(old).map(withoutState)) &&
    onlyCome(networksOf(spec), networksOf(old)) &&
    !interfacesBootNew(spec, old);
  return allowed ? [] : [forbiddenField('spec', RESTRICTED)];
}

function withoutPluggable(spec: VmiSpec): unknown {
  const { volumes: _volumes, networks: _networks, domain, ...rest } = spec;
  const { devices, ...ofDomain } = domain;
  const { disks: _disks, interfaces: _interfaces, ...ofDevices } = devices ?? {};
  return { rest, ofDomain, ofDevices };
}

const disksOf = ({ domain }: VmiSpec) => domain.devices?.disks ?? [];

/** Names of volumes that may come or go: of which either spec says so, and neither the contrary. */
function hotpluggable(...specs: readonly VmiSpec[]): ReadonlySet<string> {
  const volumes = specs.flatMap((spec) => spec.volumes ?? []);
  const fixed = volumes.filter(({ persistentVolumeClaim: claim }) => claim?.hotpluggable !== true);
  return new Set(volumes.map(({ name }) => name)).difference(new Set(fixed.map(({ name }) => name)));
}

/** Those that are in both are the same in the same order; the others are of `mobile`. */
function comeAndGo<T extends Named>(now: readonly T[], before: readonly T[], mobile: ReadonlySet<string>): boolean {
  const [names, namesBefore] = [namesOf(now), namesOf(before)];
  const kept = (list: readonly T[]) => list.filter(({ name }) => names.has(name) && namesBefore.has(name));
  const moved = names.symmetricDifference(namesBefore);
  return deepEqual(kept(now), kept(before)) && moved.isSubsetOf(mobile);
}

function onlyCome<T extends Named>(now: readonly T[], before: readonly T[]): boolean {
  return namesOf(before).isSubsetOf(namesOf(now)) && comeAndGo(now, before, namesOf(now));
}

const namesOf = (items: readonly Named[]) => new Set(items.map(({ name }) => name));

function withoutState({ state: _state, ...nic }: Interface): Interface {
  return nic;
}

/** What the guest boots from is decided when it starts. */
function interfacesBootNew(spec: VmiSpec, old: VmiSpec): boolean {
  const before = namesOf(interfacesOf(old));
  return interfacesOf(spec).some(({ name, bootOrder }) => bootOrder !== undefined && !before.has(name));
}
