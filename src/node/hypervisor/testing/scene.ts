/** A hypervisor under test, and what its tests must be able to do to it from outside. */
import type { DomainDefinition } from '#node/definition/domain-definition.ts';
import type { Domain, DomainState, Hypervisor } from '../hypervisor.ts';

export interface ConformanceScene {
  /** Adopted, and without domains. */
  readonly hypervisor: Hypervisor;
  /**
   * Drops the hypervisor that is open as kill -9 of its process would (guests live on, connections are gone), does
   * `meanwhile`, and opens a new one over the same state. The new one has not adopted yet.
   */
  reopen(meanwhile?: () => Promise<void>): Promise<Hypervisor>;
  /** One that works here, with at least a disk, an interface and a serial console. */
  definition(overrides?: Partial<DomainDefinition>): DomainDefinition;
  /** The same with two disks that have a medium, `disk-first` and `disk-second`. */
  definitionWithDisks(): Promise<DomainDefinition>;
  /** An empty file that the hypervisor may write. */
  copyFile(): Promise<string>;
  /** A raw image that guests may write, another one each time. */
  diskFile(): Promise<string>;
  /** As reopen; copies that the new one begins go on and on, and guests that it sends at SLOW_BYTES_PER_SECOND. */
  reopenSlow(): Promise<Hypervisor>;
  /** The guest dies without a word, also while no hypervisor is open. */
  killGuest(id: string): Promise<void>;
  /** Another one beside it that guests can go to: adopted, and without domains. The same one each time. */
  second(): Promise<Hypervisor>;
  /** As reopen, of the second. */
  reopenSecond(): Promise<Hypervisor>;
  /** As killGuest, at the second: the one here lives on. */
  killAtSecond(id: string): Promise<void>;
  /** Whether the guests of `definition` shut down when the power button is pressed; others ignore it. */
  readonly obeys: boolean;
  /** Whether they say back what their serial console is told; others are mute. */
  readonly talks: boolean;
  /** Leaves no guest and no file. */
  end(): Promise<void>;
}

/** So slow that a guest is not sent while a test runs, and not so slow that it counts as unlimited. */
export const SLOW_BYTES_PER_SECOND = 1000;

/** A sentence about hypervisors and the function that fails when it is not true of the one in the scene. */
export type Cases = Readonly<Record<string, (scene: ConformanceScene) => Promise<void>>>;

/** Starts a guest and gives its id. */
export async function started(
  { hypervisor, definition }: ConformanceScene,
  options: { id?: string; paused?: boolean } = {},
): Promise<string> {
  const wanted = definition(options.id === undefined ? {} : { id: options.id });
  await hypervisor.create(wanted, options.paused === true ? { paused: true } : {});
  return wanted.id;
}

export function stateOf(hypervisor: Hypervisor, id: string): DomainState['state'] | 'absent' {
  return hypervisor.get(id)?.current.state ?? 'absent';
}

/** Waits for the domain to look so; how long is up to the time limit of the test. */
export function until(hypervisor: Hypervisor, id: string, looksSo: (domain: Domain) => boolean): Promise<Domain> {
  return new Promise((resolve) => {
    const look = () => {
      const domain = hypervisor.get(id);
      if (domain === undefined || !looksSo(domain)) return;
      stop();
      resolve(domain);
    };
    const stop = hypervisor.onChange((changed) => {
      if (changed === id) look();
    });
    look();
  });
}

export const hasEnded = (domain: Domain) => domain.current.state === 'ended';
