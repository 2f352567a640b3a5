/** The dependencies of the verbs of the host API. */
import type { Clock } from '#lib/clock.ts';
import type { Log } from '#lib/log.ts';
import type { DeviceReadings } from '#node/guests/device-readings.ts';
import type { DomainLocks } from '#node/guests/domain-locks.ts';
import type { AgentReader } from '#node/guest-agent/agent-reader.ts';
import type { HostImages } from '#node/host-api/host-images.ts';
import type { MonitorProbe } from '#node/host-api/monitor-probe.ts';
import type { HostVmRecords } from '#node/host-api/host-vm-records.ts';
import type { Hypervisor } from '#node/hypervisor/hypervisor.ts';
import type { Capabilities } from '#node/hardware/capabilities.ts';

export interface ReadParts {
  readonly hypervisor: Hypervisor;
  readonly readings: DeviceReadings;
  /** Reports of guest agents. */
  readonly agents: Pick<AgentReader, 'get'>;
  readonly monitors: Pick<MonitorProbe, 'findAnswering'>;
  /** Absent if only VMs of launcher pods can be listed. */
  readonly vms?: HostVmRecords | undefined;
}

export interface HostParts extends ReadParts {
  readonly vms: HostVmRecords;
  readonly images: HostImages;
  readonly turns: DomainLocks;
  readonly capabilities: Capabilities;
  readonly clock: Clock;
  readonly log: Log;
}

/**
 * Reads the devices, so that the answer has addresses. A failure is only logged: the agent reads all guests again
 * later.
 */
export async function refreshDevices(
  vmId: string,
  { readings, log }: Pick<HostParts, 'readings' | 'log'>,
): Promise<void> {
  try {
    await readings.read(vmId);
  } catch (err) {
    log.warn({ err, domain: vmId }, 'Cannot read the devices of a guest of the host API; the agent will retry');
  }
}
