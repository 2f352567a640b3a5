/** All that a decision about one guest may know. Missing is undefined. */
import type { VirtualMachineInstance } from '#api/virtual-machine-instance/kind.ts';
import type { Pod } from '#kube/core-kinds.ts';
import type { Stored } from '#kube/meta.ts';
import type { Attempt, Stopping } from '#node/domains/domain-action.ts';
import type { Reading } from '#node/domains/device-book.ts';
import type { DeviceNotes } from '#node/domains/hotplug-devices.ts';
import type { AgentNews } from '#node/guest-agent/agent-reader.ts';
import type { Health } from '#node/probes/probe-keeper.ts';
import type { MigrationNotes } from '#node/migration/migrations.ts';
import type { Capabilities, Domain, DomainInspection } from '#node/hypervisor/hypervisor.ts';

export interface DomainWorld {
  /** The launcher pod on this node. */
  readonly pod: Stored<Pod> | undefined;
  /** The very instance that the pod was made for; undefined where there is none of that uid any more. */
  readonly vmi: Stored<VirtualMachineInstance> | undefined;
  /** What the hypervisor has under the uid of the instance. */
  readonly domain: Domain | undefined;
  /** Its devices as they are now, and those that are going. */
  readonly inspection: DomainInspection | undefined;
  /** What this process last read of its devices. */
  readonly reading: Reading | undefined;
  /** When they are to be read next; undefined while what is known of them is true. */
  readonly readingDueAtMs: number | undefined;
  /** By device. */
  readonly hotplugNotes: DeviceNotes;
  /** What this process knows of its moving from node to node. */
  readonly migration?: MigrationNotes;
  /** What its guest agent says. */
  readonly agent?: AgentNews | undefined;
  /** What its probes say. */
  readonly health?: Health | undefined;
  readonly attempt: Attempt | undefined;
  readonly stopping: Stopping | undefined;
  readonly node: NodeFacts;
  /** The time of day. */
  readonly nowMs: number;
  /** By Clock.elapsed, as the other times here: a clock that is set neither cuts a guest off nor keeps it. */
  readonly elapsedMs: number;
}

/** What does not change while the agent runs. */
export interface NodeFacts {
  readonly name: string;
  readonly hostIp: string;
  readonly capabilities: Capabilities;
  /** Under which user guests run, where that is not our own. */
  readonly guestUid?: number | undefined;
}
