/**
 * Estimates the memory that a guest needs beyond its own; the pod requests both. Measured with QEMU 7.2 and q35,
 * rounded up:
 *
 *   fixed      64 MiB   QEMU itself: code, device models, I/O buffers, firmware
 *   vcpus       2 MiB   each: stack and thread
 *   memory     1/512    page tables of the guest's memory
 *   tpm         8 MiB   swtpm, 7 MiB measured
 *   video      16 MiB   the memory of the card, if the spec allows one
 *
 * Emulation without KVM needs up to 100 MiB more for translated code. It is meant for trials and is not included.
 */
import { vcpusOf } from '#api/domain/cpu.ts';
import type { DomainSpec } from '#api/domain/domain.ts';
import { allowsVideo } from '#api/devices/fixed-devices.ts';

const MIB = 1024 * 1024;
const FIXED_BYTES = 64 * MIB;
const VCPU_BYTES = 2 * MIB;
const TPM_BYTES = 8 * MIB;
const VIDEO_BYTES = 16 * MIB;
const PAGE_TABLE_SHARE = 512;

/** Returns the overhead in bytes, rounded up to whole MiB. */
export function memoryOverheadBytes(domain: DomainSpec, guestBytes: number): number {
  const { tpm } = domain.devices ?? {};
  const hasTpm = tpm !== undefined && tpm.enabled !== false;
  const extra = (hasTpm ? TPM_BYTES : 0) + (allowsVideo(domain.devices ?? {}) ? VIDEO_BYTES : 0);
  const bytes = FIXED_BYTES + vcpusOf(domain) * VCPU_BYTES + guestBytes / PAGE_TABLE_SHARE + extra;
  return Math.ceil(bytes / MIB) * MIB;
}
