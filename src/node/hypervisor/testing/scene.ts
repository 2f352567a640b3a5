/** A hypervisor under test, and what its tests can do to it from outside. */
import type { DomainDefinition } from '#node/hardware/domain-definition.ts';
import type { DomainInfo, DomainState, Hypervisor } from '#node/hypervisor/hypervisor.ts';

export interface ConformanceScene {
  /** Already adopted, without domains. */
  readonly hypervisor: Hypervisor;
  /**
   * Drops the open hypervisor as kill -9 of its process would (guests live on, connections are gone), runs `meanwhile`,
   * and opens a new one on the same state. The new one has not adopted yet.
   */
  reopen(meanwhile?: () => Promise<void>): Promise<Hypervisor>;
  /** A definition that works in this scene, with at least a disk, an interface and a serial console. */
  definition(overrides?: Partial<DomainDefinition>): DomainDefinition;
  /** The same with two disks that have a medium: `disk-first` and `disk-second`. */
  definitionWithDisks(): Promise<DomainDefinition>;
  /** Creates an empty file that the hypervisor may write. */
  copyFile(): Promise<string>;
  /** Creates a new raw image that guests may write. */
  diskFile(): Promise<string>;
  /** Reopens the hypervisor so that its copies do not finish, and guests are sent at SLOW_BYTES_PER_SECOND. */
  reopenSlow(): Promise<Hypervisor>;
  /** Kills the guest, also while no hypervisor is open. */
  killGuest(id: string): Promise<void>;
  /**
   * Returns a second hypervisor to which guests can migrate: adopted, at first without domains, the same one each time.
   */
  second(): Promise<Hypervisor>;
  /** Reopens the second hypervisor. */
  reopenSecond(): Promise<Hypervisor>;
  /** Kills the guest at the second hypervisor only. */
  killAtSecond(id: string): Promise<void>;
  /** True if the guests shut down when the power button is pressed; otherwise they ignore it. */
  readonly shutsDownOnPowerButton: boolean;
  /** True if the guests echo input of their serial console; otherwise they print nothing. */
  readonly echoesInput: boolean;
  /** Removes all guests and files. */
  end(): Promise<void>;
}

/** Slow enough that a send does not finish during a test. 0 would mean unlimited. */
export const SLOW_BYTES_PER_SECOND = 1000;

/** Tests by the statement about hypervisors that they check. */
export type Cases = Readonly<Record<string, (scene: ConformanceScene) => Promise<void>>>;

/** Starts a guest and returns its id. */
export async function startGuest(
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

/** Waits until the condition holds for the domain; the test's timeout is the limit. */
export function waitUntil(
  hypervisor: Hypervisor,
  id: string,
  condition: (domain: DomainInfo) => boolean,
): Promise<DomainInfo> {
  return new Promise((resolve) => {
    const check = () => {
      const domain = hypervisor.get(id);
      if (domain === undefined || !condition(domain)) return;
      stop();
      resolve(domain);
    };
    const stop = hypervisor.onChange((changed) => {
      if (changed === id) check();
    });
    check();
  });
}

export const hasEnded = (domain: DomainInfo) => domain.current.state === 'ended';
