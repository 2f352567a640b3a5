/**
 * Asks nodes for the VMs that have changed, many at once: for each node one call at a time, and whoever comes meanwhile
 * goes together into the next. Where nothing changes nobody asks.
 *
 *   idle ──read──► gathering ──nobody more──► calling ──answered──► idle
 *                                               ▲          │ others have come
 *                                               └──────────┘
 */
import type { HostVm } from '#api/host-api.ts';
import type { HostReader } from '#controllers/device-map/host-reader.ts';
import { backoffMs } from '#lib/backoff.ts';
import type { Clock } from '#lib/clock.ts';
import type { Log } from '#lib/log.ts';

/** What changes together is seen over some moments: a node is asked when nobody has come for that long ... */
export const GATHER_MS = 250;
/** ... or somebody has waited that long. */
export const MAX_GATHER_MS = 2000;
export const MAX_VMS_PER_CALL = 500;
/** Of a node that does not answer, for all of its VMs alike. */
const BACKOFF = { firstMs: 500, maxMs: 60_000 };
const MAX_FAILING_NODES = 10_000;

export interface DeviceReportsOptions {
  readonly hosts: HostReader;
  readonly clock: Clock;
  readonly log: Log;
  /** GATHER_MS unless told; 0 asks in the same turn. */
  readonly gatherMs?: number;
  /** Whoever waits then is told so. */
  readonly signal: AbortSignal;
}

/** What a node says of one VM; undefined where it has none. */
export type Report =
  | { readonly vm: HostVm | undefined }
  /** Nobody answered: look again after that time. Told in the log, once for each call. */
  | { readonly retryAfterMs: number };

interface Asked {
  readonly answer: Promise<Report>;
  resolve(report: Report): void;
  reject(error: unknown): void;
}

interface Desk {
  /** By the id of the VM; whoever asks for the same one shares the answer. */
  readonly waiting: Map<string, Asked>;
  /** Clock.elapsed when the first one came; undefined while the node is being asked. */
  sinceMs: number | undefined;
  cancelTimer: () => void;
}

export class DeviceReports {
  readonly #options: DeviceReportsOptions;
  /** Of nodes that are asked, or about to be. */
  readonly #desks = new Map<string, Desk>();
  /** How often each node has not answered, one time after another. */
  readonly #failures = new Map<string, number>();

  constructor(options: DeviceReportsOptions) {
    this.#options = options;
    options.signal.addEventListener('abort', () => this.#stop(), { once: true });
  }

  /** Rejects only when the controller stops. */
  read(node: string, vmId: string): Promise<Report> {
    if (this.#options.signal.aborted) return Promise.reject(stopped());
    let desk = this.#desks.get(node);
    if (desk === undefined) {
      desk = { waiting: new Map(), sinceMs: this.#options.clock.elapsed(), cancelTimer: () => {} };
      this.#desks.set(node, desk);
    }
    let asked = desk.waiting.get(vmId);
    if (asked === undefined) {
      asked = newAsked();
      desk.waiting.set(vmId, asked);
      if (desk.sinceMs !== undefined) this.#gather(node, desk, desk.sinceMs);
    }
    return asked.answer;
  }

  #gather(node: string, desk: Desk, sinceMs: number): void {
    const { clock, gatherMs = GATHER_MS } = this.#options;
    const serve = () => void this.#serve(node);
    desk.cancelTimer();
    const leftMs = sinceMs + MAX_GATHER_MS - clock.elapsed();
    if (gatherMs > 0) desk.cancelTimer = clock.after(Math.max(0, Math.min(gatherMs, leftMs)), serve);
    else if (desk.waiting.size === 1) queueMicrotask(serve);
  }

  async #serve(node: string): Promise<void> {
    const desk = this.#desks.get(node);
    if (desk === undefined) return;
    desk.sinceMs = undefined;
    while (desk.waiting.size > 0) {
      const batch = [...desk.waiting].slice(0, MAX_VMS_PER_CALL);
      for (const [vmId] of batch) desk.waiting.delete(vmId);
      await this.#call(node, batch);
    }
    if (this.#desks.get(node) === desk) this.#desks.delete(node);
  }

  async #call(node: string, batch: readonly (readonly [string, Asked])[]): Promise<void> {
    const { hosts, signal } = this.#options;
    const vmIds = batch.map(([vmId]) => vmId);
    try {
      const vms = await hosts.list(node, vmIds, { signal });
      const found = new Map(vms.map((vm) => [vm.vmId, vm]));
      this.#failures.delete(node);
      for (const [vmId, { resolve }] of batch) resolve({ vm: found.get(vmId) });
    } catch (error) {
      const retryAfterMs = this.#failed(node, error, batch.length);
      for (const [, { resolve }] of batch) resolve({ retryAfterMs });
    }
  }

  #failed(node: string, error: unknown, vms: number): number {
    const { log, signal } = this.#options;
    const failures = (this.#failures.get(node) ?? 0) + 1;
    // Nodes that are gone for good are not remembered for ever.
    if (this.#failures.size >= MAX_FAILING_NODES) this.#failures.clear();
    this.#failures.set(node, failures);
    const retryAfterMs = backoffMs(failures, BACKOFF);
    const facts = { err: error, node, vms, failures, retryAfterMs };
    if (!signal.aborted) log.warn(facts, 'Cannot read the devices of guests; trying again later');
    return retryAfterMs;
  }

  #stop(): void {
    for (const { waiting, cancelTimer } of this.#desks.values()) {
      cancelTimer();
      for (const { reject } of waiting.values()) reject(stopped());
      waiting.clear();
    }
    this.#desks.clear();
  }
}

function newAsked(): Asked {
  const { promise: answer, resolve, reject } = Promise.withResolvers<Report>();
  return { answer, resolve, reject };
}

function stopped(): Error {
  return new Error('the controller stops');
}
