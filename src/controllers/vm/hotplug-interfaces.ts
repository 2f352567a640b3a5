/**
 * Which interfaces of a running instance come and go, so that it has what the template says. One that is gone stays in
 * the spec of the instance as `absent`: its MAC and PCI address wait for its return. Pure.
 */
import {
  type Interface,
  type Network,
  network as networkSchema,
  networkInterface as interfaceSchema,
} from '#api/domain/interface.ts';
import type { LearnedDevice } from '#api/learned-device.ts';
import type { VmiSpec } from '#api/virtual-machine-instance/spec.ts';
import { meant } from '#controllers/vm/meaning.ts';
import { deepEqual } from '#kube/deep.ts';

export interface InterfaceView {
  /** What a start would make now. */
  readonly next: VmiSpec;
  /** The instance that runs. */
  readonly now: VmiSpec;
  /** Of the identity record. */
  readonly rows: readonly LearnedDevice[];
  /** Whether these are what the instance tells of; otherwise some of it may still have to be read. */
  readonly isRead: boolean;
}

export interface InterfaceSteps {
  /** In the order of the template. */
  readonly plug: readonly Plugged[];
  /** Names of those that are to be absent. */
  readonly unplug: readonly string[];
  /** Names of those that are no longer to be absent. */
  readonly bringBack: readonly string[];
  /** The link of those that are there or return, where it changes. */
  readonly links: ReadonlyMap<string, 'up' | 'down'>;
  /** Names of all whose difference goes away while the guest runs, now or later, or shows only when they return. */
  readonly live: ReadonlySet<string>;
}

export interface Plugged {
  readonly nic: Interface;
  readonly network?: Network;
}

export function interfaceSteps({ next, now, rows, isRead }: InterfaceView): InterfaceSteps {
  const [wanted, present] = [interfacesByName(next), interfacesByName(now)];
  const plug: Plugged[] = [];
  const unplug: string[] = [];
  const bringBack: string[] = [];
  const live = new Set<string>();
  const links = new Map<string, 'up' | 'down'>();
  for (const [name, want] of wanted) {
    const has = present.get(name);
    if (isAbsent(want.nic)) {
      if (has !== undefined && !isAbsent(has.nic)) {
        // What the guest boots from stays.
        if (has.nic.bootOrder !== undefined) continue;
        if (isRecordedAs(rows, name, false) ?? isRead) unplug.push(name);
      }
      live.add(name);
    } else if (has === undefined) {
      if (want.nic.bootOrder !== undefined) continue;
      plug.push(want);
      live.add(name);
    } else if (isAbsent(has.nic) && deepEqual(meaning(has), meaning(want))) {
      if (isRecordedAs(rows, name, true) ?? true) {
        bringBack.push(name);
        links.set(name, linkOf(want.nic));
      }
      live.add(name);
    } else if (!isAbsent(has.nic) && linkOf(has.nic) !== linkOf(want.nic)) links.set(name, linkOf(want.nic));
  }
  for (const [name, has] of present) if (!wanted.has(name) && isAbsent(has.nic)) live.add(name);
  return { plug, unplug, bringBack, links, live };
}

function linkOf({ state }: Interface): 'up' | 'down' {
  return state === 'down' ? 'down' : 'up';
}

export function isAbsent({ state }: Interface): boolean {
  return state === 'absent';
}

function interfacesByName({ domain, networks = [] }: VmiSpec): Map<string, Plugged> {
  const plugs = new Map(networks.map((network) => [network.name, network]));
  return new Map((domain.devices?.interfaces ?? []).map((nic) => [nic.name, { nic, network: plugs.get(nic.name) }]));
}

/**
 * Before the guest loses it: whoever dies in between must not take it for one that the guest has lost by itself. Undefined
 * where it is not on record: then nobody knows yet, or ever will, where it is.
 */
function isRecordedAs(rows: readonly LearnedDevice[], name: string, plugged: boolean): boolean | undefined {
  const row = rows.find(({ id }) => id === `nic-${name}`);
  return row === undefined ? undefined : (row.plugged !== false) === plugged;
}

function meaning({ nic, network }: Plugged): unknown {
  const { state: _, ...rest } = asHardware(nic);
  return [meant(interfaceSchema, rest), meant(networkSchema, network)];
}

/** With the model that it has unless set; the link says nothing: it changes while the guest runs. */
export function asHardware({ state, model = 'virtio', ...nic }: Interface): Interface {
  return isAbsent({ ...nic, state }) ? { ...nic, model, state } : { ...nic, model };
}
