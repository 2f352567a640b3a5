/** Computes the resources of the launcher pod: memory and CPUs of the guest, and the overhead of running them. Pure. */
import { vcpusOf } from '#api/domain/cpu.ts';
import type { DomainSpec } from '#api/domain/domain.ts';
import type { PodContainer, Quantities, ResourceQuota } from '#kube/core-kinds.ts';
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

/** Settings outside of an instance that decide about the resources of its pod. */
export interface ResourcePolicy {
  /** The resources for which a quota of the namespace demands limits. */
  readonly limited: ReadonlySet<'cpu' | 'memory'>;
  /** Guest memory in percent of the requested memory: 100 reserves all of it, 200 half of it. */
  readonly memoryOvercommit: number;
}

export const FULL_MEMORY: ResourcePolicy = { limited: new Set(), memoryOvercommit: 100 };

/** Returns the resources for which the quotas of a namespace demand limits. */
export function limitedResources(quotas: readonly Pick<ResourceQuota, 'spec'>[]): ResourcePolicy['limited'] {
  const names = ['cpu', 'memory'] as const;
  return new Set(names.filter((name) => quotas.some(({ spec }) => spec?.hard?.[`limits.${name}`] !== undefined)));
}

type Resources = NonNullable<PodContainer['resources']>;

/**
 * Returns the resources of the container that runs the guest. The request contains all memory of the guest, even if the
 * spec requests less, because the guest can use it; only the settings of the installation can reduce it.
 */
export function launcherResources(domain: DomainSpec, policy: ResourcePolicy = FULL_MEMORY): Resources {
  const { requests = {}, limits = {}, overcommitGuestOverhead = false } = domain.resources ?? {};
  const guest = domain.memory?.guest ?? requests['memory'] ?? limits['memory'] ?? 0;
  const guestBytes = quantityToNumber(quantityOf(guest));
  const overhead = memoryOverheadBytes(domain, guestBytes);
  const reserved = Math.ceil((guestBytes * 100) / Math.max(policy.memoryOvercommit, 100));
  const memory = plusBytes(
    larger(requests['memory'] ?? limits['memory'] ?? reserved, reserved),
    overcommitGuestOverhead ? 0 : overhead,
  );
  const vcpus = vcpusOf(domain);
  const cpu = requests['cpu'] ?? limits['cpu'] ?? `${MILLI_CPU_PER_VCPU * vcpus}m`;
  const cpuLimit = limits['cpu'] ?? (policy.limited.has('cpu') ? larger(cpu, vcpus) : undefined);
  const memoryLimit =
    limits['memory'] === undefined ? undefined : larger(plusBytes(limits['memory'], overhead), memory);
  const bounds: Quantities = {
    ...(cpuLimit === undefined ? {} : { cpu: cpuLimit }),
    ...(memoryLimit === undefined ? (policy.limited.has('memory') ? { memory } : {}) : { memory: memoryLimit }),
  };
  return { requests: { cpu, memory }, ...(Object.keys(bounds).length === 0 ? {} : { limits: bounds }) };
}

const CONSOLE_REQUESTS: Readonly<Record<'cpu' | 'memory', string>> = { cpu: '5m', memory: '8Mi' };

/**
 * Returns the resources of the container that logs the serial console. It has the same limits as the container of the
 * guest, with the values of its requests, so that it does not change the quality of service of the pod.
 */
export function consoleResources({ limits = {} }: Resources): Resources {
  const bounded = (['cpu', 'memory'] as const).filter((name) => limits[name] !== undefined);
  return {
    requests: { ...CONSOLE_REQUESTS },
    ...(bounded.length === 0
      ? {}
      : { limits: Object.fromEntries(bounded.map((name) => [name, CONSOLE_REQUESTS[name]])) }),
  };
}

function larger(a: string | number, b: string | number): string {
  const text = quantityOf(a).nanos >= quantityOf(b).nanos ? a : b;
  return String(text);
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
