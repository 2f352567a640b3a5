/**
 * Leader election: one of several processes leads.
 *
 *   following ──lease acquired──► leading ──────── stop ───────► lead() ends ──► lease released
 *       ▲                            └─ not renewed in time, or held by another process: the signal of lead() is
 *       └──────────────────────────────── aborted, and when lead() has ended, the process follows again
 *
 * Time is measured from when a renewal is *sent*: for every observer the lease lasts at least 15 s from then, and the
 * signal is aborted after 10 s. So no other process leads before lead() has ended, provided that it ends within the
 * remaining 5 s.
 */
import { delay } from '#client/abort.ts';
import type { Client, ObjectName } from '#client/client.ts';
import { addJitter } from '#lib/backoff.ts';
import type { Clock } from '#lib/clock.ts';
import { invariant } from '#lib/invariant.ts';
import type { Log } from '#lib/log.ts';
import { LeaseCandidate } from '#runtime/lease-candidate.ts';

export interface LeaderElectionOptions {
  readonly client: Pick<Client, 'get' | 'create' | 'update'>;
  readonly clock: Clock;
  readonly log: Log;
  readonly lease: ObjectName;
  /** Unique for each process. */
  readonly identity: string;
  readonly signal: AbortSignal;
  /** Leads until the signal is aborted, and must then end at once. */
  lead(signal: AbortSignal): Promise<void>;
  readonly leaseDurationMs?: number;
  readonly renewDeadlineMs?: number;
  readonly retryPeriodMs?: number;
  readonly random?: () => number;
}

export class LeadershipLostError extends Error {
  override name = 'LeadershipLostError';
}

type Settings = Required<Omit<LeaderElectionOptions, 'random'>> & Pick<LeaderElectionOptions, 'random'>;

/**
 * Leads whenever possible, until the signal is aborted or `lead` ends by itself. Errors of `lead` while it leads are
 * thrown after the lease was released.
 */
export async function runWhileLeading(options: LeaderElectionOptions): Promise<void> {
  const settings: Settings = { leaseDurationMs: 15_000, renewDeadlineMs: 10_000, retryPeriodMs: 2000, ...options };
  const { leaseDurationMs, renewDeadlineMs, retryPeriodMs, signal } = settings;
  invariant(leaseDurationMs > renewDeadlineMs, 'a lease is longer than the time to renew it');
  invariant(renewDeadlineMs > retryPeriodMs, 'there is time for more than one renewal');
  const candidate = new LeaseCandidate(settings);
  try {
    while (!signal.aborted) {
      const term = await acquire(candidate, settings);
      if (term === undefined) return;
      const end = await leadTerm(term, candidate, settings);
      if (end === 'done') return;
    }
  } finally {
    candidate.close();
  }
}

/** A period of leadership. It lasts until the deadline of the latest successful renewal. */
class Term {
  readonly #settings: Settings;
  readonly #lost = new AbortController();
  #cancelDeadline: () => void = () => {};

  constructor(settings: Settings) {
    this.#settings = settings;
  }

  get lost(): AbortSignal {
    return this.#lost.signal;
  }

  /** Attempts once to acquire or renew the lease. The deadline runs even if there is no response. */
  async renew(candidate: LeaseCandidate, signal?: AbortSignal): Promise<boolean> {
    const { clock, renewDeadlineMs } = this.#settings;
    const cancel = clock.after(renewDeadlineMs, () => this.lose('the lease was not renewed in time'));
    const attempt = new AbortController();
    const onAbort = (): void => attempt.abort(signal?.aborted ? signal.reason : this.lost.reason);
    signal?.addEventListener('abort', onAbort);
    this.lost.addEventListener('abort', onAbort);
    let held = false;
    try {
      held = await candidate.hold(attempt.signal);
      return held;
    } finally {
      signal?.removeEventListener('abort', onAbort);
      this.lost.removeEventListener('abort', onAbort);
      if (held) {
        this.#cancelDeadline();
        this.#cancelDeadline = cancel;
      } else {
        cancel();
      }
    }
  }

  lose(reason: string): void {
    this.close();
    this.#lost.abort(new LeadershipLostError(reason));
  }

  close(): void {
    this.#cancelDeadline();
  }
}

/** Returns undefined if the signal is aborted first. */
async function acquire(candidate: LeaseCandidate, settings: Settings): Promise<Term | undefined> {
  const { clock, log, lease, identity, retryPeriodMs, random, signal } = settings;
  let reported: string | undefined;
  while (!signal.aborted) {
    const term = new Term(settings);
    try {
      if ((await term.renew(candidate, signal)) && !term.lost.aborted) {
        log.info({ lease: lease.name, identity }, 'became the leader');
        return term;
      }
    } catch (error) {
      if (!signal.aborted) log.warn({ err: error, lease: lease.name }, 'Cannot acquire the lease; retrying');
    }
    term.close();
    if (candidate.holder !== reported) {
      reported = candidate.holder;
      log.info({ lease: lease.name, holder: reported }, 'waiting for the lease');
    }
    // Between one and two periods, so that followers do not retry at the same time.
    await delay(clock, addJitter(2 * retryPeriodMs, random), { signal });
  }
  return undefined;
}

async function leadTerm(term: Term, candidate: LeaseCandidate, settings: Settings): Promise<'done' | 'lost'> {
  const { log, lease, lead, signal } = settings;
  const leading = new AbortController();
  const ended = new AbortController();
  const onStop = (): void => leading.abort(signal.reason);
  const onLost = (): void => leading.abort(term.lost.reason);
  signal.addEventListener('abort', onStop);
  term.lost.addEventListener('abort', onLost);
  // Continues until lead() has ended, so that no other process starts before.
  const renewals = renewUntil(ended.signal, term, candidate, settings);
  try {
    if (!signal.aborted) await lead(leading.signal);
    return term.lost.aborted ? 'lost' : 'done';
  } catch (error) {
    if (!leading.signal.aborted) throw error;
    log.debug({ err: error, lease: lease.name }, 'lead() failed after its signal was aborted');
    return signal.aborted ? 'done' : 'lost';
  } finally {
    ended.abort();
    await renewals;
    term.close();
    signal.removeEventListener('abort', onStop);
    if (term.lost.aborted) log.warn({ err: term.lost.reason, lease: lease.name }, 'lost leadership');
    else await release(candidate, settings);
  }
}

async function renewUntil(
  ended: AbortSignal,
  term: Term,
  candidate: LeaseCandidate,
  settings: Settings,
): Promise<void> {
  const { clock, log, lease, retryPeriodMs } = settings;
  for (;;) {
    await delay(clock, retryPeriodMs, { signal: ended });
    if (ended.aborted || term.lost.aborted) return;
    try {
      if (!(await term.renew(candidate, ended)) && candidate.holder !== settings.identity) {
        term.lose(`the lease is held by "${candidate.holder}"`);
      }
    } catch (error) {
      if (ended.aborted || term.lost.aborted) return;
      log.warn({ err: error, lease: lease.name }, 'Cannot renew the lease; retrying');
    }
  }
}

/** Releases the lease, so that the next leader need not wait until it expires. */
async function release(candidate: LeaseCandidate, { clock, log, lease, retryPeriodMs }: Settings): Promise<void> {
  const controller = new AbortController();
  const cancel = clock.after(retryPeriodMs, () => controller.abort(new Error('no response in time')));
  try {
    await candidate.release(controller.signal);
    log.info({ lease: lease.name }, 'released the lease');
  } catch (error) {
    log.warn({ err: error, lease: lease.name }, 'Cannot release the lease; it will expire');
  } finally {
    cancel();
  }
}
