/**
 * One candidate for a Lease (coordination.k8s.io/v1), as client-go's leader election writes it. It judges others by
 * its own clock only: a holder is gone when its record did not change for the record's duration, counted from when
 * *we* saw it. Timestamps of others are for people.
 */
import type { Client, ObjectName } from '#client/client.ts';
import { isApiError } from '#kube/api-error.ts';
import type { KubeObject, ResourceType, Stored } from '#kube/meta.ts';
import { microTimestamp } from '#lib/clock.ts';
import type { Clock } from '#lib/clock.ts';
import { deepEqual } from '#kube/deep.ts';

export interface LeaseSpec {
  holderIdentity?: string;
  leaseDurationSeconds?: number;
  acquireTime?: string;
  renewTime?: string;
  leaseTransitions?: number;
}

export interface Lease extends KubeObject {
  spec?: LeaseSpec;
}

export const LEASES: ResourceType<Lease> = {
  group: 'coordination.k8s.io',
  version: 'v1',
  kind: 'Lease',
  plural: 'leases',
  namespaced: true,
};

export interface LeaseCandidateOptions {
  readonly client: Pick<Client, 'get' | 'create' | 'update'>;
  readonly clock: Clock;
  readonly lease: ObjectName;
  /** Must be this process's alone: two with one identity would both believe to hold the lease. */
  readonly identity: string;
  readonly leaseDurationMs: number;
}

export class LeaseCandidate {
  readonly #options: LeaseCandidateOptions;
  #observed: Stored<Lease> | undefined;
  /** Whether the observed record stood unchanged for its whole duration. */
  #expired = true;
  #cancelExpiry: () => void = () => {};

  constructor(options: LeaseCandidateOptions) {
    this.#options = options;
  }

  get holder(): string {
    return this.#observed?.spec?.holderIdentity ?? '';
  }

  /** Acquires or renews. False when another holds it or was faster; throws when the API cannot be asked. */
  async hold(signal: AbortSignal): Promise<boolean> {
    try {
      if (this.#isOurs() && (await this.#renewAsObserved(signal))) return true;
      return await this.#holdAsRead(signal);
    } catch (error) {
      if (isApiError(error, 'Conflict') || isApiError(error, 'AlreadyExists')) return false;
      throw error;
    }
  }

  /** Gives it up, so that another need not wait. Only when nothing is done in its name any more. */
  async release(signal: AbortSignal): Promise<void> {
    // A renewal that was given up may have come through after all: only the server knows the state.
    const lease = await this.#read(signal);
    if (lease === undefined || lease.spec?.holderIdentity !== this.#options.identity) return;
    const time = this.#time();
    const { leaseTransitions } = lease.spec;
    const spec = { leaseDurationSeconds: 1, acquireTime: time, renewTime: time, leaseTransitions };
    this.#see(await this.#options.client.update(LEASES, { ...lease, spec }, { signal }));
  }

  /** Forgets timers; the candidate is not used any more. */
  close(): void {
    this.#cancelExpiry();
  }

  /** Mostly nobody else writes to our lease: one request instead of two. */
  async #renewAsObserved(signal: AbortSignal): Promise<boolean> {
    try {
      await this.#write(this.#observed!, signal);
      return true;
    } catch (error) {
      if (isApiError(error, 'Conflict') || isApiError(error, 'NotFound')) return false;
      throw error;
    }
  }

  async #holdAsRead(signal: AbortSignal): Promise<boolean> {
    const lease = await this.#read(signal);
    if (lease !== undefined) this.#see(lease);
    // Also when somebody deleted the lease: who held it does not know that yet.
    if (this.holder !== '' && !this.#isOurs() && !this.#expired) return false;
    if (lease === undefined) await this.#create(signal);
    else await this.#write(lease, signal);
    return true;
  }

  async #read(signal: AbortSignal): Promise<Stored<Lease> | undefined> {
    const { client, lease } = this.#options;
    try {
      return await client.get(LEASES, lease, { signal });
    } catch (error) {
      if (isApiError(error, 'NotFound')) return undefined;
      throw error;
    }
  }

  async #create(signal: AbortSignal): Promise<void> {
    const { client, lease } = this.#options;
    const time = this.#time();
    const spec = { ...this.#claim(), acquireTime: time, renewTime: time, leaseTransitions: 0 };
    const object = { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', metadata: { ...lease }, spec };
    this.#see(await client.create(LEASES, object, { signal }));
  }

  async #write(lease: Stored<Lease>, signal: AbortSignal): Promise<void> {
    const time = this.#time();
    const { acquireTime = time, leaseTransitions = 0, holderIdentity } = lease.spec ?? {};
    const kept = holderIdentity === this.#options.identity;
    const history = kept
      ? { acquireTime, leaseTransitions }
      : { acquireTime: time, leaseTransitions: leaseTransitions + 1 };
    const spec = { ...lease.spec, ...this.#claim(), ...history, renewTime: time };
    this.#see(await this.#options.client.update(LEASES, { ...lease, spec }, { signal }));
  }

  #see(lease: Stored<Lease>): void {
    const unchanged = this.#observed !== undefined && deepEqual(this.#observed.spec, lease.spec);
    this.#observed = lease;
    if (unchanged) return;
    const { clock, leaseDurationMs } = this.#options;
    const seconds = lease.spec?.leaseDurationSeconds;
    this.#cancelExpiry();
    this.#expired = false;
    this.#cancelExpiry = clock.after(seconds === undefined ? leaseDurationMs : seconds * 1000, () => {
      this.#expired = true;
    });
  }

  #isOurs(): boolean {
    return this.holder === this.#options.identity;
  }

  #claim(): LeaseSpec {
    const { identity, leaseDurationMs } = this.#options;
    return { holderIdentity: identity, leaseDurationSeconds: Math.ceil(leaseDurationMs / 1000) };
  }

  #time(): string {
    return microTimestamp(this.#options.clock.now());
  }
}
