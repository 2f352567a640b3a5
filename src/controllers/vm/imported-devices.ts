/** A VM that was imported starts with the devices that it had: not before they are in its identity record. Pure. */
import { importedDevicesOf } from '#api/imported-devices.ts';
import { IMPORTED_DEVICES_ANNOTATION } from '#api/names.ts';
import { ownRecord } from '#controllers/vm/identity.ts';
import { wantOf } from '#controllers/vm/run-strategy.ts';
import type { VmWorld } from '#controllers/vm/vm-world.ts';

/** Whether its start waits for controllers/device-map to take them over. */
export function awaitsImport(world: VmWorld): boolean {
  if (world.vm.metadata.annotations?.[IMPORTED_DEVICES_ANNOTATION] === undefined) return false;
  return wantOf(world).to === 'start' && ownRecord(world)?.status?.devices === undefined;
}

/** Why nobody can take them over: the start would wait for ever. */
export function importFault(world: VmWorld): string | undefined {
  const imported = awaitsImport(world) ? importedDevicesOf(world.vm) : undefined;
  return imported !== undefined && 'fault' in imported ? imported.fault : undefined;
}
