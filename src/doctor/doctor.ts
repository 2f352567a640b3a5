/** `selfsame doctor`: runs all checks of the machine without changing anything. */
import type { Examination } from '#doctor/finding.ts';
import { examineFirmware, examineKvm, examineLoopDevices, examineSandboxes } from '#doctor/hardware.ts';
import type { ExaminedMachine } from '#doctor/machine.ts';
import { examineNetwork } from '#doctor/network.ts';
import {
  examineDataDir,
  examineGuest,
  examineNode,
  examinePort,
  examineTours,
  type PlaneLocation,
} from '#doctor/place.ts';
import { examinePrograms } from '#doctor/programs.ts';
import { VERSION } from '#lib/version.ts';

export async function examine(machine: ExaminedMachine, place: PlaneLocation): Promise<Examination> {
  const findings = await Promise.all([
    examinePrograms(machine),
    examineKvm(machine),
    examineFirmware(machine),
    examineLoopDevices(machine),
    examineNetwork(machine),
    examineDataDir(machine, place),
    examinePort(machine, place),
    examineGuest(machine, place),
  ]);
  return {
    version: VERSION,
    findings: [examineNode(machine), ...findings.flat(), examineSandboxes(machine), ...examineTours(place)],
  };
}
