/** What is kept of a simulated guest, in memory and on disk: all that the next process needs. */
import type { DomainDefinition } from '#node/definition/domain-definition.ts';
import type { FreezeRecord } from '../guest-freeze.ts';
import type { DomainState } from '../hypervisor.ts';
import type { DomainMigration, Incoming } from '../migration.ts';
import type { AgentAnswers, FakeAgentState } from './fake-agent.ts';
import type { FakeCopy } from './fake-copies.ts';
import type { Entry } from './fake-doors.ts';

/** All that is kept of a guest, also on disk. */
export interface GuestRecord {
  readonly id: string;
  readonly name: string;
  readonly machine: string;
  readonly startedAtMs: number;
  readonly origin?: DomainDefinition['origin'];
  /** JSON of the DomainDefinition as it is now: a third of the memory of the parsed one. */
  definition: string;
  current: DomainState;
  /** What the serial console said, the last SAID_MAX characters, one for each byte. */
  said: string;
  ignoresPowerButton: boolean;
  /** The power button was pressed while the guest was paused. */
  pressed: boolean;
  /** Of its disks; those that have ended too, until they are forgotten. */
  copies?: FakeCopy[];
  /** Ids of devices that the guest was asked to let go, and has not. */
  letGoOf?: readonly string[];
  /** It does not let go until it is told to. */
  holdsDevices?: boolean;
  /** Elsewhere: what it said then is not known here. */
  hasBooted?: boolean;
  /** What it would lose if it began anew. */
  memory?: readonly Entry[];
  /** Its agent listens, with what it answers other than any; functions are forgotten with their process. */
  agent?: AgentAnswers;
  /** What the guest knows, and what its hypervisor has written down of it. */
  agentState?: FakeAgentState;
  frozen?: FreezeRecord | undefined;
  migration?: DomainMigration;
  /** Through which it came, or goes. */
  door?: string;
  /** Source: it ran when it began to be sent. Target: it is to run when it has come. */
  goesOn?: boolean;
  /** Source: ids of the disks whose data goes along. */
  movingDisks?: readonly string[];
  /** Source: the last of it was sent. */
  handedOver?: boolean;
}

export function newGuest(
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
    said: paused ? '' : banner(definition),
    ignoresPowerButton: false,
    pressed: false,
  };
}

export function newIncoming(
  definition: DomainDefinition,
  { uid, peer, startedAtMs, paused }: Incoming,
  door: string,
): GuestRecord {
  return {
    ...newGuest(definition, { startedAtMs, paused: true }),
    current: { state: 'incoming' },
    migration: { uid, peer, role: 'target', step: 'waiting' },
    door,
    goesOn: !paused,
  };
}

const COMING = 'it is still coming from node';
const WHY_NOT_HERE: Partial<Record<DomainMigration['step'], string>> = {
  sending: 'it is being sent to node',
  migrated: 'it has migrated to node',
  waiting: COMING,
  stored: COMING,
  committed: COMING,
};

/** Why nobody may change the guest at this host now; undefined where it is here and stays. */
export function whyNotHere({ migration }: GuestRecord): string | undefined {
  const why = migration && WHY_NOT_HERE[migration.step];
  return why && `${why} "${migration.peer}"`;
}

/** What it says when it boots. */
export function banner({ firmware, machine, name }: DomainDefinition): string {
  return `Simulated guest ${name} on ${machine}, uuid ${firmware.uuid}\r\nlogin: `;
}
