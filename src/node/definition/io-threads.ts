/**
 * Assigns I/O threads to disks, as KubeVirt does: a dedicated thread for each disk that asks for one; the others share
 * one thread (`shared`), or are distributed over up to two threads for each processor (`auto`). Only virtio disks have
 * threads. The guest does not see them. Pure.
 */
import { vcpusOf } from '#api/domain/cpu.ts';
import type { DomainSpec } from '#api/domain/domain.ts';
import type { Device } from '#node/hardware/domain-definition.ts';

const THREADS_PER_VCPU = 2;

interface IoThreadAssignment {
  readonly devices: readonly Device[];
  /** Absent: none. */
  readonly ioThreads?: number;
}

export function assignIoThreads(domain: DomainSpec, devices: readonly Device[]): IoThreadAssignment {
  const dedicated = new Set(
    (domain.devices?.disks ?? []).filter((disk) => disk.dedicatedIOThread === true).map(({ name }) => `disk-${name}`),
  );
  const { ioThreadsPolicy } = domain;
  if (ioThreadsPolicy === undefined && dedicated.size === 0) return { devices };
  const disks = devices.filter((device) => device.type === 'disk' && device.bus === 'virtio').map(({ id }) => id);
  const [own, others] = [disks.filter((id) => dedicated.has(id)), disks.filter((id) => !dedicated.has(id))];
  if (disks.length === 0) return { devices };
  const limit = ioThreadsPolicy === 'auto' ? THREADS_PER_VCPU * vcpusOf(domain) : own.length + 1;
  const ownThreads = ioThreadsPolicy === 'auto' ? Math.min(own.length, Math.max(1, limit - 1)) : own.length;
  const shared = others.length === 0 ? 0 : Math.min(others.length, Math.max(1, limit - ownThreads));
  const threads = new Map([
    ...others.map((id, i) => [id, i % Math.max(1, shared)] as const),
    ...own.map((id, i) => [id, shared + (i % Math.max(1, ownThreads))] as const),
  ]);
  return {
    ioThreads: shared + ownThreads,
    devices: devices.map((device) => {
      const ioThread = threads.get(device.id);
      return device.type === 'disk' && ioThread !== undefined ? { ...device, ioThread } : device;
    }),
  };
}
