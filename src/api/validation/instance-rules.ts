/**
 * Validates the spec of an instance beyond its schema: a list of small rules, each in a file of its own. They run after
 * the schema validation, so that types are correct.
 */
import type { Configuration } from '#api/kubevirt/configuration.ts';
import { checkBootOrder } from '#api/validation/boot-order.ts';
import { checkChipset } from '#api/validation/chipset.ts';
import { checkClock } from '#api/validation/clock.ts';
import { checkCpu } from '#api/validation/cpu.ts';
import { checkDevices } from '#api/validation/devices.ts';
import { checkDisks } from '#api/validation/disks.ts';
import { checkFirmware } from '#api/validation/firmware.ts';
import { checkHardware } from '#api/validation/hardware.ts';
import { checkInterfaces } from '#api/validation/interfaces.ts';
import { checkMachine } from '#api/validation/machine.ts';
import { checkMemory } from '#api/validation/memory.ts';
import { checkNetworks } from '#api/validation/networks.ts';
import { checkPciAddresses } from '#api/validation/pci-addresses.ts';
import { checkPlacement } from '#api/validation/placement.ts';
import { checkProbes } from '#api/validation/probes.ts';
import { checkVmiVolumes } from '#api/validation/volumes.ts';
import type { VmiSpec } from '#api/virtual-machine-instance/spec.ts';
import type { FieldError } from '#kube/field-error.ts';

/** `path` is the path of the spec: `spec`, or `spec.template.spec` in a VM. */
export type InstanceRule = (spec: VmiSpec, path: string, configuration: Configuration) => FieldError[];

const RULES: readonly InstanceRule[] = [
  checkCpu,
  checkMemory,
  checkMachine,
  checkChipset,
  checkFirmware,
  checkDevices,
  checkHardware,
  checkClock,
  checkDisks,
  checkVmiVolumes,
  checkInterfaces,
  checkNetworks,
  checkBootOrder,
  checkPciAddresses,
  checkPlacement,
  checkProbes,
];

export function checkInstanceSpec(spec: VmiSpec, path: string, configuration: Configuration): FieldError[] {
  return RULES.flatMap((rule) => rule(spec, path, configuration));
}
