/** The world of a decision about one guest: everything that it may know. Missing parts are undefined. */
import type { VirtualMachineInstance } from '#api/virtual-machine-instance/kind.ts';
import type { Pod } from '#kube/core-kinds.ts';
import type { Stored } from '#kube/meta.ts';
import type { StartAttempt, StopState } from '#node/guests/domain-notes.ts';
import type { DomainDeviceReading } from '#node/guests/device-readings.ts';
import type { DeviceNotes } from '#node/domains/hotplug/hotplug-devices.ts';
import type { NodeFacts } from '#node/guests/node-facts.ts';
import type { GuestAgentReport } from '#node/guest-agent/agent-reader.ts';
import type { GuestHealth } from '#node/probes/probe-runner.ts';
import type { MigrationNotes } from '#node/migration/migrations.ts';
import type { PodNetwork } from '#node/network/pod-networks.ts';
import type { DomainInfo, DomainInspection } from '#node/hypervisor/hypervisor.ts';

export interface DomainWorld {
  /** The launcher pod on this node. */
  readonly pod: Stored<Pod> | undefined;
  /** The instance that the pod was created for; undefined if no instance has that uid anymore. */
  readonly vmi: Stored<VirtualMachineInstance> | undefined;
  /** The hypervisor's domain whose id is the uid of the instance. */
  readonly domain: DomainInfo | undefined;
  /** The current devices of the domain, and those that are being unplugged. */
  readonly inspection: DomainInspection | undefined;
  /** The networks of the guest; undefined if it has no network namespace. */
  readonly network?: PodNetwork | undefined;
  /** The last reading of the devices by this process. */
  readonly reading: DomainDeviceReading | undefined;
  /** Time of the next reading, by Clock.elapsed; undefined while the last reading is current. */
  readonly readingDueAtMs: number | undefined;
  /** Notes by device id. */
  readonly hotplugNotes: DeviceNotes;
  /** The state of migrations to and from this node, as this process knows it. */
  readonly migration?: MigrationNotes;
  /** The last report of the guest agent. */
  readonly agent?: GuestAgentReport | undefined;
  /** The results of the probes. */
  readonly health?: GuestHealth | undefined;
  readonly attempt: StartAttempt | undefined;
  readonly stop: StopState | undefined;
  readonly node: NodeFacts;
  /** Milliseconds since the epoch. */
  readonly nowMs: number;
  /**
   * Clock.elapsed, as for all other times here: setting the system clock must neither shorten nor extend the time that a
   * guest has to shut down.
   */
  readonly elapsedMs: number;
}
