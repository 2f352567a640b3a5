/** The record of a simulated guest, in memory and on disk: everything that the next process needs. */
import type { DomainDefinition } from '#node/hardware/domain-definition.ts';
import type { FreezeRecord } from '#node/hypervisor/guest-freeze.ts';
import type { DomainState } from '#node/hypervisor/hypervisor.ts';
import type { DomainMigration, IncomingMigration } from '#node/hypervisor/migration.ts';
import type { AgentAnswers, FakeAgentState } from '#node/hypervisor/fake/fake-agent.ts';
import type { FakeCopy } from '#node/hypervisor/fake/fake-copies.ts';
import type { StateEntry } from '#node/hypervisor/fake/fake-endpoints.ts';

/** Stored as JSON, so its member names must not change. */
export interface GuestRecord {
  readonly id: string;
  readonly name: string;
  readonly machine: string;
  readonly startedAtMs: number;
  readonly origin?: DomainDefinition['origin'];
  /** JSON of the current DomainDefinition. It takes a third of the memory of the parsed one. */
  definition: string;
  current: DomainState;
  /** The last MAX_CONSOLE_CHARACTERS characters of the serial console's output, one character per byte. */
  said: string;
  ignoresPowerButton: boolean;
  /** The power button was pressed while the guest was paused. */
  pressed: boolean;
  /** Copies of disks, including finished ones until they are forgotten. */
  copies?: FakeCopy[];
  /** Ids of devices that the guest was asked to release and still has. */
  letGoOf?: readonly string[];
  /** The guest keeps its devices until releaseDevices is called. */
  holdsDevices?: boolean;
  /** The guest has booted on another host; its console output of then is not known here. */
  hasBooted?: boolean;
  /** The guest's memory, which a restart clears. */
  memory?: readonly StateEntry[];
  /** Present while the agent runs: its special answers. Functions among them are lost with their process. */
  agent?: AgentAnswers;
  /** The agent's own state. `frozen` is the hypervisor's record of it. */
  agentState?: FakeAgentState;
  frozen?: FreezeRecord | undefined;
  migration?: DomainMigration;
  /** The endpoint to which the guest is sent, or at which it arrived. */
  door?: string;
  /** Source: the guest was running when the send began. Target: the guest runs once it has arrived. */
  goesOn?: boolean;
  /** Source: ids of the disks whose data is moved. */
  movingDisks?: readonly string[];
  /** Source: everything was sent. */
  handedOver?: boolean;
}

export function newGuestRecord(
  definition: DomainDefinition,
  { startedAtMs, paused }: { startedAtMs: number; paused: boolean },
): GuestRecord {
  const { id, name, machine, origin } = definition;
  return {
    id,
    name,
    machine,
    startedAtMs,
    ...(origin !== undefined && { origin }),
    definition: JSON.stringify(definition),
    current: { state: paused ? 'paused' : 'running' },
    said: paused ? '' : bootBanner(definition),
    ignoresPowerButton: false,
    pressed: false,
  };
}

export function newIncomingRecord(
  definition: DomainDefinition,
  { uid, peer, startedAtMs, paused }: IncomingMigration,
  endpoint: string,
): GuestRecord {
  return {
    ...newGuestRecord(definition, { startedAtMs, paused: true }),
    current: { state: 'incoming' },
    migration: { uid, peer, role: 'target', step: 'waiting' },
    door: endpoint,
    goesOn: !paused,
  };
}

const NOT_ARRIVED = 'the guest has not arrived yet from node';
const REFUSAL_BY_STEP: Partial<Record<DomainMigration['step'], string>> = {
  sending: 'the guest is migrating to node',
  migrated: 'the guest has migrated to node',
  waiting: NOT_ARRIVED,
  stored: NOT_ARRIVED,
  committed: NOT_ARRIVED,
};

/** Returns why the guest must not be changed on this host now, or undefined if it may. */
export function migrationRefusal({ migration }: GuestRecord): string | undefined {
  const why = migration && REFUSAL_BY_STEP[migration.step];
  return why && `${why} "${migration.peer}"`;
}

/** Returns the text that the guest prints when it boots. */
export function bootBanner({ firmware, machine, name }: DomainDefinition): string {
  return `Simulated guest ${name} on ${machine}, uuid ${firmware.uuid}\r\nlogin: `;
}
