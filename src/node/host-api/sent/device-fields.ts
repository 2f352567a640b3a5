/** Reads fields of a sent device, whose values may be strings, numbers or empty. Pure. */
import { INTERFACE_MODELS, type InterfaceModel } from '#api/domain/interface.ts';
import type { HostDevice } from '#api/host-api.ts';
import { isRecord } from '#kube/meta.ts';
import { readText, readWholeNumber } from '#node/host-api/sent/sent-values.ts';

/** Returns the address with all values as strings, or undefined if it is absent or empty. */
export function sentAddressOf({ address }: Pick<HostDevice, 'address'>): Record<string, string> | undefined {
  if (!isRecord(address) || Object.keys(address).length === 0) return undefined;
  return Object.fromEntries(Object.entries(address).map(([key, value]) => [key, readText(value) ?? '']));
}

/** Returns the boot order, or undefined if it is absent or 0. */
export function sentBootOrderOf({ bootOrder }: Pick<HostDevice, 'bootOrder'>): number | undefined {
  return readWholeNumber(bootOrder) || undefined;
}

export function ifaceOf({ iface }: HostDevice): string {
  return readText(iface) ?? '';
}

/**
 * Returns the model of a network card, or undefined if we do not support it. `list` reports the model of VMs of
 * launcher pods as `device`.
 */
export function nicModelOf({ nicModel, device }: HostDevice): InterfaceModel | undefined {
  const find = (model: unknown) => INTERFACE_MODELS.find((known) => known === model);
  if (nicModel === undefined || nicModel === '') return find(device) ?? 'virtio';
  return nicModel === 'pv' ? 'virtio' : find(nicModel);
}
