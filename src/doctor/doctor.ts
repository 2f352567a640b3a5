/** `selfsame doctor`: runs all checks of the machine without changing anything. */
import type { Examination } from '#doctor/finding.ts';
import { examineFirmware, examineKvm, examineLoopDevices, examineTaps } from '#doctor/hardware.ts';
import type { Machine } from '#doctor/machine.ts';
import { examineDataDir, examineGuest, examineNode, examinePort, examineTours, type Place } from '#doctor/place.ts';
import { examinePrograms } from '#doctor/programs.ts';
import { VERSION } from '#lib/version.ts';

export async function examine(machine: Machine, place: Place): Promise<Examination> {
  const findings = await Promise.all([
    examinePrograms(machine),
    examineKvm(machine),
    examineFirmware(machine),
    examineLoopDevices(machine),
    examineTaps(machine),
    examineDataDir(machine, place),
    examinePort(machine, place),
    examineGuest(machine, place),
  ]);
  return { version: VERSION, findings: [examineNode(machine), ...findings.flat(), ...examineTours(place)] };
}
