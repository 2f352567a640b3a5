/**
 * One candidate for a Lease (coordination.k8s.io/v1), as written by client-go's leader election. Judges other holders
 * only by its own clock: a lease is expired if its record did not change for its duration, measured from when this
 * candidate saw it. Timestamps of other holders are only information for users.
 */
import type { Client, ObjectName } from '#client/client.ts';
import { isApiError } from '#kube/api-error.ts';
import { LEASES, type Lease } from '#kube/core-kinds.ts';
import type { Stored } from '#kube/meta.ts';
import { microTimestamp } from '#lib/clock.ts';
import type { Clock } from '#lib/clock.ts';
import { deepEqual } from '#kube/deep.ts';

type LeaseSpec = NonNullable<Lease['spec']>;

interface LeaseCandidateOptions {
  readonly client: Pick<Client, 'get' | 'create' | 'update'>;
  readonly clock: Clock;
  readonly lease: ObjectName;
  /** Unique for each process: two candidates with the same identity would both assume that they hold the lease. */
  readonly identity: string;
  readonly leaseDurationMs: number;
}

export class LeaseCandidate {
  readonly #options: LeaseCandidateOptions;
  #observed: Stored<Lease> | undefined;
  /** True if the observed record did not change for its whole duration. */
  #expired = true;
  #cancelExpiry: () => void = () => {};

  constructor(options: LeaseCandidateOptions) {
    this.#options = options;
  }

  get holder(): string {
    return this.#observed?.spec?.holderIdentity ?? '';
  }

  /**
   * Acquires or renews the lease. Returns false if another candidate holds it or was faster. Throws if the API fails.
   */
  async hold(signal: AbortSignal): Promise<boolean> {
    try {
      if (this.#isOurs() && (await this.#renewAsObserved(signal))) return true;
      return await this.#holdAfterRead(signal);
    } catch (error) {
      if (isApiError(error, 'Conflict') || isApiError(error, 'AlreadyExists')) return false;
      throw error;
    }
  }

  /**
   * Releases the lease, so that the next holder need not wait. Call it only after all work under the lease has ended.
   */
  async release(signal: AbortSignal): Promise<void> {
    // A renewal without a response may have been successful: only the server knows the state.
    const lease = await this.#read(signal);
    if (lease === undefined || lease.spec?.holderIdentity !== this.#options.identity) return;
    const time = this.#time();
    const { leaseTransitions } = lease.spec;
    const spec = { leaseDurationSeconds: 1, acquireTime: time, renewTime: time, leaseTransitions };
    this.#observe(await this.#options.client.update(LEASES, { ...lease, spec }, { signal }));
  }

  /** Cancels timers. The candidate must not be used afterwards. */
  close(): void {
    this.#cancelExpiry();
  }

  /** Renews without reading first, because usually no other process changes our lease: one request instead of two. */
  async #renewAsObserved(signal: AbortSignal): Promise<boolean> {
    try {
      await this.#write(this.#observed!, signal);
      return true;
    } catch (error) {
      if (isApiError(error, 'Conflict') || isApiError(error, 'NotFound')) return false;
      throw error;
    }
  }

  async #holdAfterRead(signal: AbortSignal): Promise<boolean> {
    const lease = await this.#read(signal);
    if (lease !== undefined) this.#observe(lease);
    // Also if the lease was deleted: its holder may not know that yet.
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
    this.#observe(await client.create(LEASES, object, { signal }));
  }

  async #write(lease: Stored<Lease>, signal: AbortSignal): Promise<void> {
    const time = this.#time();
    const { acquireTime = time, leaseTransitions = 0, holderIdentity } = lease.spec ?? {};
    const isRenewal = holderIdentity === this.#options.identity;
    const history = isRenewal
      ? { acquireTime, leaseTransitions }
      : { acquireTime: time, leaseTransitions: leaseTransitions + 1 };
    const spec = { ...lease.spec, ...this.#claim(), ...history, renewTime: time };
    this.#observe(await this.#options.client.update(LEASES, { ...lease, spec }, { signal }));
  }

  #observe(lease: Stored<Lease>): void {
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
