/** The parts of the agent that carry out actions on guests. */
import type { VirtualMachineInstance } from '#api/virtual-machine-instance/kind.ts';
import type { Client } from '#client/client.ts';
import type { Pod } from '#kube/core-kinds.ts';
import type { Clock } from '#lib/clock.ts';
import type { Log } from '#lib/log.ts';
import type { DeviceReadings } from '#node/guests/device-readings.ts';
import type { DomainNotes } from '#node/guests/domain-notes.ts';
import type { HotplugNotes } from '#node/guests/hotplug-notes.ts';
import type { InstanceNetworks } from '#node/guests/instance-networks.ts';
import type { GuestKernel, NodeFacts } from '#node/guests/node-facts.ts';
import type { Hypervisor } from '#node/hypervisor/hypervisor.ts';
import type { Migrations } from '#node/migration/migrations.ts';
import type { PodNetworks } from '#node/network/pod-networks.ts';
import type { OwnWrites } from '#node/pods/own-writes.ts';
import type { Volumes } from '#node/volumes/volumes-port.ts';
import type { EventSink } from '#runtime/events.ts';

export interface DomainActionParts {
  readonly client: Client;
  readonly hypervisor: Hypervisor;
  readonly volumes: Volumes;
  readonly guest: GuestKernel | undefined;
  readonly node: NodeFacts;
  /** The networks of guests; undefined if guests have no network namespaces on this node. */
  readonly networks?: PodNetworks | undefined;
  readonly instanceNetworks?: InstanceNetworks | undefined;
  readonly notes: DomainNotes;
  readonly hotplugNotes: HotplugNotes;
  readonly readings: DeviceReadings;
  readonly migrations: Migrations;
  readonly ownPods: OwnWrites<Pod>;
  readonly ownVmis: OwnWrites<VirtualMachineInstance>;
  readonly events: EventSink;
  readonly clock: Clock;
  readonly log: Log;
  readonly signal: AbortSignal;
}
