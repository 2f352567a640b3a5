/** The limits of a guest's cgroup. Pure. */
import type { DomainDefinition } from '#node/hardware/domain-definition.ts';
import type { SandboxLimits } from '#node/sandbox/oci-config.ts';

const MIB = 2 ** 20;
/** Programs, firmware, display, device state, I/O buffers and swtpm. Measured: 60 to 180 MiB. */
const BASE_BYTES = 512 * MIB;
/** Page tables and the bookkeeping of the guest's memory. */
const SHARE_OF_MEMORY = 1 / 64;
const BYTES_PER_PROCESSOR = 16 * MIB;
const BYTES_PER_DISK = 32 * MIB;
/** QEMU's emulator keeps translated code, by default up to this size. */
const TRANSLATION_BUFFER_BYTES = 1024 * MIB;

const SHARES_PER_PROCESSOR = 1024;
const MIN_SHARES = 2;
const MAX_SHARES = 262_144;
/** Threads count as processes. QEMU has up to 64 threads for block I/O, and some for each display and migration. */
const BASE_PROCESSES = 512;

/**
 * Returns limits that a healthy guest never reaches: they protect the host from a QEMU that misbehaves. The memory of the
 * guest itself is limited by QEMU.
 */
export function sandboxLimits(definition: DomainDefinition, accelerator: 'kvm' | 'tcg'): SandboxLimits {
  const memoryBytes = definition.memoryKib * 1024;
  const { sockets, cores, threads } = definition.cpu;
  const processors = sockets * cores * threads;
  const disks = definition.devices.filter(({ type }) => type === 'disk').length;
  return {
    memoryBytes:
      memoryBytes +
      Math.ceil(memoryBytes * SHARE_OF_MEMORY) +
      BASE_BYTES +
      BYTES_PER_PROCESSOR * processors +
      BYTES_PER_DISK * disks +
      (accelerator === 'tcg' ? TRANSLATION_BUFFER_BYTES : 0),
    cpuShares: Math.min(MAX_SHARES, Math.max(MIN_SHARES, SHARES_PER_PROCESSOR * processors)),
    processes: BASE_PROCESSES + processors,
  };
}
