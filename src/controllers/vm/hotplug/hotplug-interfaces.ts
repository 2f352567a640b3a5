/**
 * Decides which interfaces to plug into and unplug from a running instance, so that it matches the template. An
 * unplugged interface remains in the spec of the instance as `absent` and keeps its MAC and PCI address. Pure.
 */
import {
  type Interface,
  type Network,
  network as networkSchema,
  networkInterface as interfaceSchema,
} from '#api/domain/interface.ts';
import type { LearnedDevice } from '#api/devices/learned-device.ts';
import type { VmiSpec } from '#api/virtual-machine-instance/spec.ts';
import { normalizeValue } from '#controllers/vm/hotplug/normalize-value.ts';
import { deepEqual } from '#kube/deep.ts';

export interface InterfaceHotplugInput {
  /** The spec that a start would build now. */
  readonly next: VmiSpec;
  /** The spec of the running instance. */
  readonly now: VmiSpec;
  /** The rows of the identity record. */
  readonly rows: readonly LearnedDevice[];
  /** True if the rows match the devices that the instance reports; otherwise some of them may not be recorded yet. */
  readonly isRecordCurrent: boolean;
}

export interface InterfaceSteps {
  /** New interfaces, in the order of the template. */
  readonly plug: readonly AttachedInterface[];
  /** Names of interfaces that become absent. */
  readonly unplug: readonly string[];
  /** Names of absent interfaces that are plugged in again. */
  readonly bringBack: readonly string[];
  /** The new link state of interfaces whose link changes, by name. */
  readonly links: ReadonlyMap<string, 'up' | 'down'>;
  /** Names of interfaces that need no restart: they are updated now or later, or differ only while they are absent. */
  readonly liveUpdatable: ReadonlySet<string>;
}

/** An interface and its network, which have the same name. */
interface AttachedInterface {
  readonly nic: Interface;
  readonly network?: Network;
}

export function decideInterfaceSteps({ next, now, rows, isRecordCurrent }: InterfaceHotplugInput): InterfaceSteps {
  const [wanted, present] = [interfacesByName(next), interfacesByName(now)];
  const plug: AttachedInterface[] = [];
  const unplug: string[] = [];
  const bringBack: string[] = [];
  const liveUpdatable = new Set<string>();
  const links = new Map<string, 'up' | 'down'>();
  for (const [name, want] of wanted) {
    const has = present.get(name);
    if (isAbsent(want.nic)) {
      if (has !== undefined && !isAbsent(has.nic)) {
        // An interface from which the guest boots cannot be unplugged.
        if (has.nic.bootOrder !== undefined) continue;
        if (isRecordedAs(rows, name, false) ?? isRecordCurrent) unplug.push(name);
      }
      liveUpdatable.add(name);
    } else if (has === undefined) {
      if (want.nic.bootOrder !== undefined) continue;
      plug.push(want);
      liveUpdatable.add(name);
    } else if (isAbsent(has.nic) && deepEqual(comparable(has), comparable(want))) {
      if (isRecordedAs(rows, name, true) ?? true) {
        bringBack.push(name);
        links.set(name, linkOf(want.nic));
      }
      liveUpdatable.add(name);
    } else if (!isAbsent(has.nic) && linkOf(has.nic) !== linkOf(want.nic)) links.set(name, linkOf(want.nic));
  }
  for (const [name, has] of present) if (!wanted.has(name) && isAbsent(has.nic)) liveUpdatable.add(name);
  return { plug, unplug, bringBack, links, liveUpdatable };
}

function linkOf({ state }: Interface): 'up' | 'down' {
  return state === 'down' ? 'down' : 'up';
}

function isAbsent({ state }: Interface): boolean {
  return state === 'absent';
}

function interfacesByName({ domain, networks = [] }: VmiSpec): Map<string, AttachedInterface> {
  const networksByName = new Map(networks.map((network) => [network.name, network]));
  return new Map(
    (domain.devices?.interfaces ?? []).map((nic) => [nic.name, { nic, network: networksByName.get(nic.name) }]),
  );
}

/**
 * Reports whether the record has the interface as plugged or unplugged, as given, or undefined if it has no row for it.
 * The record must have the new state before the guest is changed: otherwise a crash in between would make the interface
 * look like one that the guest lost by itself.
 */
function isRecordedAs(rows: readonly LearnedDevice[], name: string, plugged: boolean): boolean | undefined {
  const row = rows.find(({ id }) => id === `nic-${name}`);
  return row === undefined ? undefined : (row.plugged !== false) === plugged;
}

function comparable({ nic, network }: AttachedInterface): unknown {
  const { state: _, ...rest } = normalizeInterface(nic);
  return [normalizeValue(interfaceSchema, rest), normalizeValue(networkSchema, network)];
}

/** Returns the interface with its default model and without its link state, which can change while the guest runs. */
export function normalizeInterface({ state, model = 'virtio', ...nic }: Interface): Interface {
  return isAbsent({ ...nic, state }) ? { ...nic, model, state } : { ...nic, model };
}
