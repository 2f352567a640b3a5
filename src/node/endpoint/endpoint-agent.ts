/** The part of the node agent that its HTTPS endpoint uses. The agent serializes the calls for each domain. */
import type { Duplex } from 'node:stream';
import type { GuestRead } from '#api/guest-info.ts';
import type { HostAnswer, HostVerb } from '#api/host-api.ts';
import type { GuestPort } from '#node/hypervisor/guest-access.ts';
import type { DomainInfo } from '#node/hypervisor/hypervisor.ts';
import type { DiskContent, DiskUpload } from '#node/volumes/volumes-port.ts';

/** The guest was started without a display. */
export class NoDisplayError extends Error {
  override readonly name = 'NoDisplayError';
}

export interface EndpointAgent {
  /** Returns the domain of an instance on this node, or undefined if there is none. */
  find(namespace: string, vmiName: string): DomainInfo | undefined;
  /** The following methods wait for the lock of the domain with this id, and reject with HypervisorError. */
  pause(id: string): Promise<void>;
  resume(id: string): Promise<void>;
  softReboot(id: string): Promise<void>;
  reset(id: string): Promise<void>;
  /** Like Hypervisor.freeze. Also rejects with GuestAgentError, and so does unfreeze. */
  freeze(id: string, seconds: number): Promise<void>;
  unfreeze(id: string): Promise<void>;
  /** Returns information of the guest agent. Rejects with GuestAgentError. */
  readGuest(id: string, what: GuestRead): Promise<object>;
  /** Opens both directions of the serial console. The stream ends with the domain. */
  openConsole(id: string): Promise<Duplex>;
  /** Opens an RFB connection to the display. The stream ends with the domain. Also rejects with NoDisplayError. */
  openDisplay(id: string): Promise<Duplex>;
  /** Returns the display as PNG. `moveCursor` wakes it up before. Also rejects with NoDisplayError. */
  screenshot(id: string, options: { readonly moveCursor: boolean }): Promise<Buffer>;
  /** Opens a connection to a port of the guest. For UDP, each chunk is one datagram. */
  openPort(id: string, port: GuestPort): Promise<Duplex>;
  /** Returns undefined if this node has no such pod or container. */
  logs(namespace: string, pod: string, container: string): ContainerLog | undefined;
  /** Absent if disks are simulated. */
  readonly disks?: DiskAccess;
  /** Absent if the node does not serve the host API. */
  readonly host?: HostApi;
  /** Absent if the node does not support migrations. */
  readonly migrations?: MigrationAcceptor;
}

/** Accepts connections of other node agents: migrations to this node, and queries for outcomes. */
export interface MigrationAcceptor {
  /** `from` is the other node according to its certificate. Resolves when the stream is closed. */
  accept(from: string, stream: Duplex): Promise<void>;
}

/** Access to the content of claims. Both methods reject with DiskRefusedError if a guest uses the claim. */
export interface DiskAccess {
  open(namespace: string, claim: string): Promise<DiskContent>;
  replace(namespace: string, claim: string): Promise<DiskUpload>;
}

export interface HostApi {
  /** Executes a call. Errors in the parameters are part of the answer. */
  call(verb: HostVerb, parameters: Readonly<Record<string, unknown>>, options: HostCallOptions): Promise<HostAnswer>;
}

export interface HostCallOptions {
  /** Aborted when the client disconnects. */
  readonly signal: AbortSignal;
}

/** The log of a container. Its implementation limits the size. */
export interface ContainerLog {
  /** True if each line begins with its time (RFC 3339) and a space. */
  readonly timed: boolean;
  read(): Promise<Buffer>;
  /** Yields one chunk with the result of `read`, then new output, until the container ends or the signal aborts. */
  follow(signal: AbortSignal): AsyncIterable<Buffer>;
}
