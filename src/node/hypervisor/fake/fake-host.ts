/**
 * The simulated host. It outlives the hypervisors that use it, as QEMU processes outlive a node agent. In memory it is
 * shared by passing the same host to the next hypervisor; with a directory, each guest has a small file there
 * (<id>.json), and the host of the next process loads them all. One hypervisor holds the host at a time.
 */
import { mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { isRecord } from '#kube/meta.ts';
import { newUid } from '#lib/ids.ts';
import { invariant } from '#lib/invariant.ts';
import type { DomainDefinition } from '#node/hardware/domain-definition.ts';
import type { CopyState, DiskCopy } from '#node/hypervisor/hypervisor.ts';
import type { IncomingMigration, SourceStep, TargetStep } from '#node/hypervisor/migration.ts';
import type { CopiedDisk } from '#node/hypervisor/fake/fake-copies.ts';
import {
  closeFakeEndpoint,
  closeUnknownEndpoints,
  openFakeEndpoint,
  assertRunsOnOneHost,
} from '#node/hypervisor/fake/fake-endpoints.ts';
import { FakeGuest } from '#node/hypervisor/fake/fake-guest.ts';
import { FakeStates } from '#node/hypervisor/fake/fake-states.ts';
import { newGuestRecord, newIncomingRecord, type GuestRecord } from '#node/hypervisor/fake/guest-record.ts';

const PRIVATE_DIR = 0o700;
const PRIVATE_FILE = 0o600;
const ID = /^[a-z0-9][a-z0-9-]{0,62}$/;

export interface HostHolder {
  onChange(id: string): void;
  /** Another hypervisor has taken the host. */
  onLost(): void;
}

/** Content of the guests' disks, for tests that read and write it. */
export interface FakeDiskContents {
  /** Returns undefined if the disk has no content to move. */
  readDisk(path: string): string | undefined;
  writeDisk(path: string, text: string): void;
}

export class FakeHost {
  /** Copies that start while this is true run until finishCopies or failCopies; other copies finish at once. */
  holdCopies = false;
  /** Called with all copies of a set at the point in time that they capture. */
  onCopy: ((copies: readonly CopiedDisk[]) => void) | undefined;
  /** Guests that are sent while this is true stay in transit until finishSends; other sends finish at once. */
  holdSends = false;
  /** Content of disks, which moves with the guest. */
  disks: FakeDiskContents | undefined;
  /**
   * Called when a migration step is on disk. An error that it throws stops everything at this point, as kill -9 would.
   */
  onStep: ((id: string, step: SourceStep | TargetStep) => void) | undefined;
  readonly states: FakeStates;
  /** Distinguishes this host from others. */
  readonly name: string;
  readonly #dir: string | undefined;
  readonly #guests = new Map<string, FakeGuest>();
  #holder: HostHolder | undefined;

  constructor(dir?: string, { states }: { states?: FakeStates } = {}) {
    this.#dir = dir;
    this.name = dir ?? newUid();
    if (dir !== undefined) mkdirSync(dir, { recursive: true, mode: PRIVATE_DIR });
    this.states = states ?? new FakeStates(dir);
    if (dir === undefined) return;
    for (const file of readdirSync(dir)) {
      const record = file.endsWith('.json') ? readRecord(join(dir, file)) : undefined;
      if (record !== undefined) this.#addGuestFor(record);
    }
    const records = [...this.#guests.values()].map(({ record }) => record);
    for (const record of records) this.#checkEndpoint(record);
    closeUnknownEndpoints(dir, new Set(records.flatMap(({ door: endpoint }) => endpoint ?? [])));
  }

  /** Makes this holder the one that is notified of changes; the previous holder loses the host. */
  acquire(holder: HostHolder): void {
    if (this.#holder === holder) return;
    const previous = this.#holder;
    this.#holder = holder;
    for (const guest of this.#guests.values()) guest.dropConnections();
    previous?.onLost();
  }

  release(holder: HostHolder): void {
    if (this.#holder !== holder) return;
    this.#holder = undefined;
    for (const guest of this.#guests.values()) guest.dropConnections();
  }

  guests(): Iterable<FakeGuest> {
    return this.#guests.values();
  }

  guest(id: string): FakeGuest | undefined {
    return this.#guests.get(id);
  }

  addGuest(definition: DomainDefinition, options: { startedAtMs: number; paused: boolean }): void {
    this.#register(newGuestRecord(definition, options));
  }

  /** Adds a guest that waits for incoming data. Returns the endpoint to which the data must be sent. */
  addIncomingGuest(definition: DomainDefinition, incoming: IncomingMigration): string {
    const endpoint = openFakeEndpoint(this.#dir);
    this.#register(newIncomingRecord(definition, incoming, endpoint));
    return endpoint;
  }

  startCopies(guest: FakeGuest, copies: readonly DiskCopy[]): void {
    guest.startCopies(copies, { hold: this.holdCopies, onCopy: (disks) => this.onCopy?.(disks) });
  }

  /** Completes all running copies. */
  finishCopies(): void {
    this.#endCopies({ state: 'done' });
  }

  /** Fails all running copies with this message. */
  failCopies(message: string): void {
    this.#endCopies({ state: 'failed', message });
  }

  /** Completes all sends in transit: their guests are paused, and only the last part is left to send. */
  finishSends(): void {
    for (const guest of this.#guests.values()) guest.sending?.finish();
  }

  remove(id: string): void {
    const record = this.#guests.get(id)?.record;
    if (record === undefined) return;
    if (record.migration?.role === 'target' && record.door !== undefined) closeFakeEndpoint(record.door);
    this.#guests.delete(id);
    if (this.#dir !== undefined) rmSync(this.#recordFile(id), { force: true });
  }

  #endCopies(end: CopyState): void {
    for (const guest of this.#guests.values()) guest.finishCopies(end);
  }

  #register(record: GuestRecord): void {
    invariant(ID.test(record.id), `the domain id ${JSON.stringify(record.id)} is a uid`);
    this.#saveRecord(record);
    this.#addGuestFor(record);
    this.#holder?.onChange(record.id);
  }

  #addGuestFor(record: GuestRecord): void {
    const guest = new FakeGuest(record, this.states, (stateChanged) => {
      this.#checkEndpoint(record);
      this.#saveRecord(record);
      if (stateChanged) this.#holder?.onChange(record.id);
    });
    this.#guests.set(record.id, guest);
  }

  #checkEndpoint({ door: endpoint, current, migration }: GuestRecord): void {
    if (endpoint === undefined) return;
    assertRunsOnOneHost(endpoint, this.name, current.state === 'running');
    if (migration?.role === 'target' && current.state === 'ended') closeFakeEndpoint(endpoint);
  }

  /** Replaces the file by a rename, so that a killed process leaves either the old record or the new one. */
  #saveRecord(record: GuestRecord): void {
    if (this.#dir === undefined) return;
    const file = this.#recordFile(record.id);
    writeFileSync(`${file}.new`, JSON.stringify(record), { mode: PRIVATE_FILE });
    renameSync(`${file}.new`, file);
  }

  #recordFile(id: string): string {
    return join(this.#dir ?? '', `${id}.json`);
  }
}

/**
 * Returns undefined for a file that is not a guest record. Our own files are complete, because they are renamed into
 * place.
 */
function readRecord(file: string): GuestRecord | undefined {
  const read: unknown = JSON.parse(readFileSync(file, 'utf8'));
  return isRecord(read) && typeof read['definition'] === 'string' ? (read as unknown as GuestRecord) : undefined;
}
