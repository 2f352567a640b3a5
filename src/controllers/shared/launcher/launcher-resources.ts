/** Computes the resources of the launcher pod: memory and CPUs of the guest, and the overhead of running them. Pure. */
import { vcpusOf } from '#api/domain/cpu.ts';
import type { DomainSpec } from '#api/domain/domain.ts';
import type { PodContainer, Quantities } from '#kube/core-kinds.ts';
import { addQuantities, formatQuantity, parseQuantity, quantityToNumber, type Quantity } from '#kube/quantity.ts';
import { allowsVideo } from '#api/devices/fixed-devices.ts';

const MIB = 1024 * 1024;
const FIXED_BYTES = 64 * MIB;
const VCPU_BYTES = 2 * MIB;
const TPM_BYTES = 8 * MIB;
const VIDEO_BYTES = 16 * MIB;
const PAGE_TABLE_SHARE = 512;
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

/**
 * Estimates the memory that a guest needs beyond its own; the pod requests both. Measured with QEMU 7.2 and q35, rounded
 * up to whole MiB:
 *
 *   fixed      64 MiB   QEMU itself: code, device models, I/O buffers, firmware
 *   vcpus       2 MiB   each: stack and thread
 *   memory     1/512    page tables of the guest's memory
 *   tpm         8 MiB   swtpm, 7 MiB measured
 *   video      16 MiB   the memory of the card, if the spec allows one
 *
 * Emulation without KVM needs up to 100 MiB more for translated code. It is meant for trials and is not included.
 */
export function memoryOverheadBytes(domain: DomainSpec, guestBytes: number): number {
  const { tpm } = domain.devices ?? {};
  const hasTpm = tpm !== undefined && tpm.enabled !== false;
  const extra = (hasTpm ? TPM_BYTES : 0) + (allowsVideo(domain.devices ?? {}) ? VIDEO_BYTES : 0);
  const bytes = FIXED_BYTES + vcpusOf(domain) * VCPU_BYTES + guestBytes / PAGE_TABLE_SHARE + extra;
  return Math.ceil(bytes / MIB) * MIB;
}
