/**
 * Builds the patch that applies hotplug steps to an instance. It fails if the lists have changed since they were read.
 * Pure.
 */
import type { Interface } from '#api/domain/interface.ts';
import { formatEphemeralVolumes } from '#api/storage/ephemeral-volumes.ts';
import { EPHEMERAL_HOTPLUG_ANNOTATION } from '#api/names.ts';
import type { VirtualMachineInstance } from '#api/virtual-machine-instance/kind.ts';
import type { DeviceSteps } from '#controllers/vm/hotplug/device-steps.ts';
import { formatPointer } from '#kube/patches/json-pointer.ts';
import type { JsonPatchOperation } from '#api/verbs/verb.ts';

type Patch = JsonPatchOperation[];

/** Returns the operations; none if there is nothing to change. */
export function buildHotplugPatch({ metadata, spec }: VirtualMachineInstance, steps: DeviceSteps): Patch {
  const { volumes, interfaces, ephemeral, persisted } = steps;
  const unplugged = new Set(volumes.unplug.map(({ name }) => name));
  const stays = ({ name }: { readonly name: string }): boolean => !unplugged.has(name);
  const { devices } = spec.domain;
  const networks = interfaces.plug.flatMap(({ network }) => (network === undefined ? [] : [network]));
  const inDevices = ['spec', 'domain', 'devices'];
  const deviceOperations = [
    ...setList([...inDevices, 'disks'], devices?.disks, [
      ...(devices?.disks ?? []).filter(stays),
      ...volumes.plug.map(({ disk }) => disk),
    ]),
    ...setList([...inDevices, 'interfaces'], devices?.interfaces, [
      ...(devices?.interfaces ?? []).map((nic) => withState(nic, interfaces)),
      ...interfaces.plug.map(({ nic }) => nic),
    ]),
  ];
  return [
    ...setList(['spec', 'volumes'], spec.volumes, [
      ...(spec.volumes ?? []).filter(stays),
      ...volumes.plug.map(({ volume }) => volume),
    ]),
    ...(deviceOperations.length > 0 && devices === undefined ? set(inDevices, undefined, {}) : []),
    ...deviceOperations,
    ...setList(['spec', 'networks'], spec.networks, [...(spec.networks ?? []), ...networks]),
    ...setEphemeralVolumes(metadata.annotations?.[EPHEMERAL_HOTPLUG_ANNOTATION], ephemeral, persisted),
  ];
}

function withState(nic: Interface, { unplug, links }: DeviceSteps['interfaces']): Interface {
  if (unplug.includes(nic.name)) return { ...nic, state: 'absent' };
  const link = links.get(nic.name);
  if (link === undefined) return nic;
  const { state: _, ...rest } = nic;
  return link === 'down' ? { ...rest, state: link } : rest;
}

/**
 * Replaces a list, unless both have the same items. Items are compared by reference: unchanged items are not copied.
 */
function setList<T>(path: readonly string[], before: readonly T[] | undefined, after: readonly T[]): Patch {
  const old = before ?? [];
  if (old.length === after.length && old.every((item, i) => item === after[i])) return [];
  return set(path, before, after.length === 0 ? undefined : after);
}

function setEphemeralVolumes(
  before: string | undefined,
  ephemeral: readonly string[],
  persisted: readonly string[],
): Patch {
  if (persisted.length === 0) return [];
  const left = ephemeral.filter((name) => !persisted.includes(name));
  const path = ['metadata', 'annotations', EPHEMERAL_HOTPLUG_ANNOTATION];
  return set(path, before, left.length === 0 ? undefined : formatEphemeralVolumes(left));
}

/** Tests the old value, then sets the new one. A missing value is tested as null. */
function set(tokens: readonly string[], before: unknown, after: unknown): Patch {
  const path = formatPointer(tokens);
  const test = { op: 'test', path, value: before ?? null } as const;
  return [test, after === undefined ? { op: 'remove', path } : { op: 'add', path, value: after }];
}
