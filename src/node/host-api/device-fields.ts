/** Fields of a device of the host API as they are meant, whatever they were sent as. Pure. */
import { INTERFACE_MODELS, type InterfaceModel } from '#api/domain/interface.ts';
import type { HostDevice } from '#api/host-api.ts';
import { isRecord } from '#kube/meta.ts';
import { textOf, wholeOf } from '#node/host-api/sent-values.ts';

/** Empty ones say nothing. */
export function addressOf({ address }: Pick<HostDevice, 'address'>): Record<string, string> | undefined {
  if (!isRecord(address) || Object.keys(address).length === 0) return undefined;
  return Object.fromEntries(Object.entries(address).map(([key, value]) => [key, textOf(value) ?? '']));
}

/** 0 is none. */
export function bootOrderOf({ bootOrder }: Pick<HostDevice, 'bootOrder'>): number | undefined {
  return wholeOf(bootOrder) || undefined;
}

export function ifaceOf({ iface }: HostDevice): string {
  return textOf(iface) ?? '';
}

/** Undefined for what we do not have. VMs of launcher pods are listed with the model as the device. */
export function modelOf({ nicModel, device }: HostDevice): InterfaceModel | undefined {
  const find = (model: unknown) => INTERFACE_MODELS.find((known) => known === model);
  if (nicModel === undefined || nicModel === '') return find(device) ?? 'virtio';
  return nicModel === 'pv' ? 'virtio' : find(nicModel);
}
