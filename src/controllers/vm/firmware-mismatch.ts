/** Reports a running VM whose firmware finds no boot loader in the image of its first disk. Pure. */
import { findFirmwareMismatch } from '#api/storage/boot-firmware.ts';
import { isFinal } from '#api/virtual-machine-instance/kind.ts';
import type { VmWorld } from '#controllers/vm/vm-world.ts';
import { findCondition, type NextCondition } from '#kube/conditions.ts';
import type { EventNote } from '#runtime/events.ts';

export const FIRMWARE_MISMATCH = 'FirmwareMismatch';

/** Returns the condition, or undefined. A guest whose agent responds has booted, whatever the image once was. */
export function firmwareMismatchCondition({ vmi, claims }: VmWorld): NextCondition | undefined {
  if (vmi === undefined || isFinal(vmi)) return undefined;
  if (findCondition(vmi.status?.conditions, 'AgentConnected')?.status === 'True') return undefined;
  const message = findFirmwareMismatch(
    vmi.spec,
    claims.flatMap(({ claim }) => claim ?? []),
  );
  if (message === undefined) return undefined;
  return { type: FIRMWARE_MISMATCH, status: 'True', reason: FIRMWARE_MISMATCH, message };
}

/** Returns the Event if the mismatch is new. Must accompany the status, which then shows the condition. */
export function firmwareMismatchEvents(world: VmWorld): EventNote[] {
  const condition = firmwareMismatchCondition(world);
  const isKnown = findCondition(world.vm.status?.conditions, FIRMWARE_MISMATCH) !== undefined;
  if (condition === undefined || isKnown) return [];
  return [{ type: 'Warning', reason: FIRMWARE_MISMATCH, message: condition.message ?? '' }];
}
