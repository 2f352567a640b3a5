/** The parts of the agent that its loops for volumes and snapshots share. */
import type { VirtualMachineInstance } from '#api/virtual-machine-instance/kind.ts';
import type { Client } from '#client/client.ts';
import type { Informer } from '#client/informer.ts';
import type { PersistentVolume, Pod } from '#kube/core-kinds.ts';
import type { Clock } from '#lib/clock.ts';
import type { Log } from '#lib/log.ts';
import type { DomainLocks } from '#node/guests/domain-locks.ts';
import type { Hypervisor } from '#node/hypervisor/hypervisor.ts';
import type { Volumes } from '#node/volumes/volumes-port.ts';
import type { EventSink } from '#runtime/events.ts';

export interface StorageParts {
  readonly client: Client;
  readonly node: string;
  readonly persistentVolumes: Informer<PersistentVolume>;
  readonly pods: Informer<Pod>;
  readonly vmis: Informer<VirtualMachineInstance>;
  readonly hypervisor: Hypervisor;
  readonly locks: DomainLocks;
  readonly volumes: Volumes;
  readonly events: EventSink;
  readonly clock: Clock;
  readonly log: Log;
  readonly signal: AbortSignal;
}

export interface StorageLoop {
  idle(): Promise<void>;
  stop(): Promise<void>;
}
