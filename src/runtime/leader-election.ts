/**
 * Leader election: of many processes one leads.
 *
 *   following ──lease acquired──► leading ──────── stop ───────► lead() ends ──► lease released
 *       ▲                            └─ not renewed in time, or held by another: lead's signal aborts,
 *       └──────────────────────────────── and when lead() has ended, we follow again
 *
 * Time is counted from when a renewal is *sent*: the lease runs for 15 s from then at least, whoever looks, and the
 * signal is aborted 10 s after it. So nobody else leads before, provided that lead() heeds its signal within the
 * 5 s between.
 */
import { delay } from '#client/abort.ts';
import type { Client, ObjectName } from '#client/client.ts';
import { jittered } from '#lib/backoff.ts';
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
  /** Leads until its signal aborts; then it ends at once. */
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
 * Leads whenever it can, until the signal aborts or `lead` ends by itself. What `lead` throws while it leads is thrown,
 * after the lease was released.
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
      const end = await serve(term, candidate, settings);
      if (end === 'done') return;
    }
  } finally {
    candidate.close();
  }
}

/** How long we may believe to lead: until the deadline of the newest renewal that came through. */
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

  /** Runs one attempt to hold the lease. Whether or not it comes back, the deadlines run. */
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

  lose(why: string): void {
    this.close();
    this.#lost.abort(new LeadershipLostError(why));
  }

  close(): void {
    this.#cancelDeadline();
  }
}

/** Undefined when the signal aborted first. */
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
      if (!signal.aborted) log.warn({ err: error, lease: lease.name }, 'Cannot ask for the lease; trying again');
    }
    term.close();
    if (candidate.holder !== reported) {
      reported = candidate.holder;
      log.info({ lease: lease.name, holder: reported }, 'following');
    }
    // Spread over one to two periods, so that followers do not all come at once.
    await delay(clock, jittered(2 * retryPeriodMs, random), { signal });
  }
  return undefined;
}

async function serve(term: Term, candidate: LeaseCandidate, settings: Settings): Promise<'done' | 'lost'> {
  const { log, lease, lead, signal } = settings;
  const leading = new AbortController();
  const over = new AbortController();
  const onStop = (): void => leading.abort(signal.reason);
  const onLost = (): void => leading.abort(term.lost.reason);
  signal.addEventListener('abort', onStop);
  term.lost.addEventListener('abort', onLost);
  // Goes on while lead() comes to its end, so that nobody starts before.
  const renewing = renewUntil(over.signal, term, candidate, settings);
  try {
    if (!signal.aborted) await lead(leading.signal);
    return term.lost.aborted ? 'lost' : 'done';
  } catch (error) {
    if (!leading.signal.aborted) throw error;
    log.debug({ err: error, lease: lease.name }, 'lead ended with an error when it was told to stop');
    return signal.aborted ? 'done' : 'lost';
  } finally {
    over.abort();
    await renewing;
    term.close();
    signal.removeEventListener('abort', onStop);
    if (term.lost.aborted) log.warn({ err: term.lost.reason, lease: lease.name }, 'lost the leadership');
    else await release(candidate, settings);
  }
}

async function renewUntil(over: AbortSignal, term: Term, candidate: LeaseCandidate, settings: Settings): Promise<void> {
  const { clock, log, lease, retryPeriodMs } = settings;
  for (;;) {
    await delay(clock, retryPeriodMs, { signal: over });
    if (over.aborted || term.lost.aborted) return;
    try {
      if (!(await term.renew(candidate, over)) && candidate.holder !== settings.identity) {
        term.lose(`the lease is held by "${candidate.holder}"`);
      }
    } catch (error) {
      if (over.aborted || term.lost.aborted) return;
      log.warn({ err: error, lease: lease.name }, 'Cannot renew the lease; trying again');
    }
  }
}

/** A courtesy; without it the next leader waits until the lease has run out. */
async function release(candidate: LeaseCandidate, { clock, log, lease, retryPeriodMs }: Settings): Promise<void> {
  const controller = new AbortController();
  const cancel = clock.after(retryPeriodMs, () => controller.abort(new Error('no answer in time')));
  try {
    await candidate.release(controller.signal);
    log.info({ lease: lease.name }, 'released the leadership');
  } catch (error) {
    log.warn({ err: error, lease: lease.name }, 'Cannot release the lease; it will run out');
  } finally {
    cancel();
  }
}
