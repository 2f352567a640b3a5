/**
 * The rows of an identity record: what the instance reports, and what it does not have right now but the VM still wants,
 * so that its address is given back. A row goes only when the template no longer names its device. Pure.
 */
import type { DeviceAddress, LearnedDevice } from '#api/learned-device.ts';
import type { VirtualMachine } from '#api/virtual-machine/kind.ts';
import { interfacesOf } from '#api/attached-interfaces.ts';
import { templateSpec } from '#controllers/vm/vm-world.ts';

export function learnDevices(
  vm: Pick<VirtualMachine, 'spec'>,
  known: readonly LearnedDevice[],
  reported: readonly LearnedDevice[],
): LearnedDevice[] {
  const present = new Set(reported.map(({ id }) => id));
  const wanted = wantedNames(vm);
  return [...reported, ...known.filter((device) => !present.has(device.id) && isWanted(device, wanted))];
}

type Wanted = Readonly<Record<string, ReadonlySet<string> | undefined>>;

/** Only what the spec names has an address that was given to it; everything else has its place by the layout. */
function isWanted({ type, name }: LearnedDevice, wanted: Wanted): boolean {
  return name !== undefined && wanted[type]?.has(name) === true;
}

function wantedNames(vm: Pick<VirtualMachine, 'spec'>): Wanted {
  const spec = templateSpec(vm);
  return {
    disk: new Set(spec.domain.devices?.disks?.map(({ name }) => name)),
    interface: new Set(interfacesOf(spec).map(({ name }) => name)),
  };
}

/** In words, for the history: each device that came, went or moved. */
export function deviceChanges(before: readonly LearnedDevice[], after: readonly LearnedDevice[]): string[] {
  const old = new Map(before.map((device) => [device.id, device]));
  const changes: string[] = [];
  for (const device of after) {
    const known = old.get(device.id);
    old.delete(device.id);
    const at = addressText(device.address);
    if (known === undefined) changes.push(`${device.id} is new at ${at}`);
    else if (addressText(known.address) !== at) {
      changes.push(`${device.id} moved from ${addressText(known.address)} to ${at}`);
    }
  }
  return [...changes, ...[...old.values()].map(({ id, address }) => `${id} is gone from ${addressText(address)}`)];
}

/** Addresses are compared as maps: the order of keys says nothing. */
function addressText(address: DeviceAddress | undefined): string {
  if (address === undefined) return 'no address';
  const fields = Object.entries(address).sort(([a], [b]) => (a < b ? -1 : 1));
  return fields.map(([key, value]) => `${key}=${value}`).join(',');
}
