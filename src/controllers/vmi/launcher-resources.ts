/** Computes the resources of the launcher pod: memory and CPUs of the guest, and the overhead of running them. Pure. */
import { vcpusOf } from '#api/domain/cpu.ts';
import type { DomainSpec } from '#api/domain/domain.ts';
import { memoryOverheadBytes } from '#controllers/vmi/memory-overhead.ts';
import type { PodContainer, Quantities } from '#kube/core-kinds.ts';
import { addQuantities, formatQuantity, parseQuantity, quantityToNumber, type Quantity } from '#kube/quantity.ts';

/** The CPU request per vCPU, as with KubeVirt's default cpuAllocationRatio of 10. */
const MILLI_CPU_PER_VCPU = 100;

export function launcherResources(domain: DomainSpec): NonNullable<PodContainer['resources']> {
  const { requests = {}, limits = {}, overcommitGuestOverhead = false } = domain.resources ?? {};
  const guest = domain.memory?.guest ?? requests['memory'] ?? limits['memory'] ?? 0;
  const overhead = memoryOverheadBytes(domain, quantityToNumber(quantityOf(guest)));
  const memory = requests['memory'] ?? limits['memory'] ?? guest;
  const cpu = requests['cpu'] ?? limits['cpu'] ?? `${MILLI_CPU_PER_VCPU * vcpusOf(domain)}m`;
  const bounds: Quantities = {
    ...(limits['cpu'] === undefined ? {} : { cpu: limits['cpu'] }),
    ...(limits['memory'] === undefined ? {} : { memory: plusBytes(limits['memory'], overhead) }),
  };
  return {
    requests: { cpu, memory: plusBytes(memory, overcommitGuestOverhead ? 0 : overhead) },
    ...(Object.keys(bounds).length === 0 ? {} : { limits: bounds }),
  };
}

function quantityOf(value: string | number): Quantity {
  return parseQuantity(String(value));
}

function plusBytes(amount: string | number, bytes: number): string {
  const sum = addQuantities(quantityOf(amount), parseQuantity(String(bytes)));
  return formatQuantity({ nanos: sum.nanos, format: 'BinarySI' });
}
