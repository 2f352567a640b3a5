/** Delays the start of an imported VM until its devices are in the identity record. Pure. */
import { importedDevicesOf } from '#api/devices/imported-devices.ts';
import { IMPORTED_DEVICES_ANNOTATION } from '#api/names.ts';
import { ownRecord } from '#controllers/vm/identity/identity.ts';
import { runActionOf } from '#controllers/vm/start/run-strategy.ts';
import type { VmWorld } from '#controllers/vm/vm-world.ts';

/** Reports whether the start waits for controllers/device-map to copy the imported devices to the record. */
export function awaitsImport(world: VmWorld): boolean {
  if (world.vm.metadata.annotations?.[IMPORTED_DEVICES_ANNOTATION] === undefined) return false;
  return runActionOf(world).kind === 'start' && ownRecord(world)?.status?.devices === undefined;
}

/** Returns why the imported devices cannot be read, or undefined if they can. The start would wait for ever. */
export function findImportError(world: VmWorld): string | undefined {
  const imported = awaitsImport(world) ? importedDevicesOf(world.vm) : undefined;
  return imported !== undefined && 'fault' in imported ? imported.fault : undefined;
}
