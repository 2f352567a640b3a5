/** What the verbs of the host API work with. */
import type { Clock } from '#lib/clock.ts';
import type { Log } from '#lib/log.ts';
import type { DeviceBook } from '#node/domains/device-book.ts';
import type { Turns } from '#node/domains/turns.ts';
import type { AgentReader } from '#node/guest-agent/agent-reader.ts';
import type { HostImages } from '#node/host-api/host-images.ts';
import type { MonitorWatch } from '#node/host-api/monitor-watch.ts';
import type { VmBook } from '#node/host-api/vm-book.ts';
import type { Capabilities, Hypervisor } from '#node/hypervisor/hypervisor.ts';

export interface ReadParts {
  readonly hypervisor: Hypervisor;
  readonly book: DeviceBook;
  /** What guest agents report. */
  readonly agents: Pick<AgentReader, 'get'>;
  readonly monitors: Pick<MonitorWatch, 'answering'>;
  /** Absent where only VMs of launcher pods are told of. */
  readonly vms?: VmBook | undefined;
}

export interface HostParts extends ReadParts {
  readonly vms: VmBook;
  readonly images: HostImages;
  readonly turns: Turns;
  readonly capabilities: Capabilities;
  readonly clock: Clock;
  readonly log: Log;
}

/** So that the answer has addresses. What cannot be read now is read later, by whoever looks after guests. */
export async function learnNow(vmId: string, { book, log }: Pick<HostParts, 'book' | 'log'>): Promise<void> {
  try {
    await book.read(vmId);
  } catch (err) {
    log.warn({ err, domain: vmId }, 'Cannot read the devices of a guest of the host API yet');
  }
}
