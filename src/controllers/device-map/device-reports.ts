/**
 * Reads the devices of changed VMs from their nodes, in batches: one call per node at a time. Reads that arrive
 * meanwhile share the next call. Without changes there are no calls.
 *
 *   idle ──read──► gathering ──no more reads──► calling ──response──► idle
 *                                                 ▲          │ more reads have arrived
 *                                                 └──────────┘
 */
import type { HostVm } from '#api/host-api.ts';
import type { HostReader } from '#controllers/device-map/host-reader.ts';
import { backoffMs } from '#lib/backoff.ts';
import type { Clock } from '#lib/clock.ts';
import type { Log } from '#lib/log.ts';

/** A node is called when no read has arrived for this time: related changes are not observed at the same moment ... */
export const GATHER_MS = 250;
/** ... or when the first read has waited this long. */
export const MAX_GATHER_MS = 2000;
export const MAX_VMS_PER_CALL = 500;
/** The delay after failed calls to a node, for all of its VMs. */
const BACKOFF = { firstMs: 500, maxMs: 60_000 };
const MAX_FAILING_NODES = 10_000;

export interface DeviceReportsOptions {
  readonly hosts: HostReader;
  readonly clock: Clock;
  readonly log: Log;
  /** GATHER_MS by default; 0 calls the node in the same turn. */
  readonly gatherMs?: number;
  /** Rejects all pending reads when aborted. */
  readonly signal: AbortSignal;
}

/** The report of a node about one VM; `vm` is undefined if the node does not have it. */
export type DeviceReport =
  | { readonly vm: HostVm | undefined }
  /** The call failed; read again after this time. The failure is logged once per call. */
  | { readonly retryAfterMs: number };

interface PendingRead {
  readonly report: Promise<DeviceReport>;
  resolve(report: DeviceReport): void;
  reject(error: unknown): void;
}

interface NodeQueue {
  /** Pending reads by the id of the VM; reads of the same VM share the report. */
  readonly waiting: Map<string, PendingRead>;
  /** Clock.elapsed at the arrival of the first read; undefined during a call. */
  sinceMs: number | undefined;
  cancelTimer: () => void;
}

export class DeviceReports {
  readonly #options: DeviceReportsOptions;
  /** The queues of nodes with pending reads or a call, by node. */
  readonly #queues = new Map<string, NodeQueue>();
  /** The number of consecutive failed calls, by node. */
  readonly #failures = new Map<string, number>();

  constructor(options: DeviceReportsOptions) {
    this.#options = options;
    options.signal.addEventListener('abort', () => this.#stop(), { once: true });
  }

  /** Reads the devices of one VM. Rejects only when the controller stops. */
  read(node: string, vmId: string): Promise<DeviceReport> {
    if (this.#options.signal.aborted) return Promise.reject(stoppingError());
    let queue = this.#queues.get(node);
    if (queue === undefined) {
      queue = { waiting: new Map(), sinceMs: this.#options.clock.elapsed(), cancelTimer: () => {} };
      this.#queues.set(node, queue);
    }
    let pending = queue.waiting.get(vmId);
    if (pending === undefined) {
      pending = newPendingRead();
      queue.waiting.set(vmId, pending);
      if (queue.sinceMs !== undefined) this.#gather(node, queue, queue.sinceMs);
    }
    return pending.report;
  }

  #gather(node: string, queue: NodeQueue, sinceMs: number): void {
    const { clock, gatherMs = GATHER_MS } = this.#options;
    const serve = () => void this.#serve(node);
    queue.cancelTimer();
    const leftMs = sinceMs + MAX_GATHER_MS - clock.elapsed();
    if (gatherMs > 0) queue.cancelTimer = clock.after(Math.max(0, Math.min(gatherMs, leftMs)), serve);
    else if (queue.waiting.size === 1) queueMicrotask(serve);
  }

  async #serve(node: string): Promise<void> {
    const queue = this.#queues.get(node);
    if (queue === undefined) return;
    queue.sinceMs = undefined;
    while (queue.waiting.size > 0) {
      const batch = [...queue.waiting].slice(0, MAX_VMS_PER_CALL);
      for (const [vmId] of batch) queue.waiting.delete(vmId);
      await this.#call(node, batch);
    }
    if (this.#queues.get(node) === queue) this.#queues.delete(node);
  }

  async #call(node: string, batch: readonly (readonly [string, PendingRead])[]): Promise<void> {
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
    // Bounds the map: nodes that are gone are never removed individually.
    if (this.#failures.size >= MAX_FAILING_NODES) this.#failures.clear();
    this.#failures.set(node, failures);
    const retryAfterMs = backoffMs(failures, BACKOFF);
    const facts = { err: error, node, vms, failures, retryAfterMs };
    if (!signal.aborted) log.warn(facts, 'Cannot read the devices of the guests; trying again later');
    return retryAfterMs;
  }

  #stop(): void {
    for (const { waiting, cancelTimer } of this.#queues.values()) {
      cancelTimer();
      for (const { reject } of waiting.values()) reject(stoppingError());
      waiting.clear();
    }
    this.#queues.clear();
  }
}

function newPendingRead(): PendingRead {
  const { promise: report, resolve, reject } = Promise.withResolvers<DeviceReport>();
  return { report, resolve, reject };
}

function stoppingError(): Error {
  return new Error('Cannot read devices: the controller is stopping');
}
