/**
 * Validates the spec of an instance beyond its schema: a list of small rules, each in a file of its own. They run after
 * the schema validation, so that types are correct.
 */
import type { Configuration } from '#api/kubevirt/configuration.ts';
import { checkBootOrder } from '#api/validation/devices/boot-order.ts';
import { checkChipset } from '#api/validation/devices/chipset.ts';
import { checkClock } from '#api/validation/spec/clock.ts';
import { checkCpu } from '#api/validation/spec/cpu.ts';
import { checkDevices } from '#api/validation/devices/devices.ts';
import { checkDisks } from '#api/validation/devices/disks.ts';
import { checkFirmware } from '#api/validation/spec/firmware.ts';
import { checkHardware } from '#api/validation/devices/hardware.ts';
import { checkInterfaces } from '#api/validation/devices/interfaces.ts';
import { checkMachine } from '#api/validation/spec/machine.ts';
import { checkMemory } from '#api/validation/spec/memory.ts';
import { checkNetworks } from '#api/validation/devices/networks.ts';
import { checkPciAddresses } from '#api/validation/devices/pci-addresses.ts';
import { checkPlacement } from '#api/validation/spec/placement.ts';
import { checkProbes } from '#api/validation/spec/probes.ts';
import { checkVmiVolumes } from '#api/validation/spec/volumes.ts';
import type { VmiSpec } from '#api/virtual-machine-instance/spec.ts';
import type { FieldError } from '#kube/field-error.ts';

/** `path` is the path of the spec: `spec`, or `spec.template.spec` in a VM. */
type InstanceRule = (spec: VmiSpec, path: string, configuration: Configuration) => FieldError[];

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
