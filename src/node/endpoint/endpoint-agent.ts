/** What the node's HTTPS endpoint needs of the node agent: the agent keeps the order of calls for each domain. */
import type { Duplex } from 'node:stream';
import type { GuestRead } from '#api/guest-info.ts';
import type { HostAnswer, HostVerb } from '#api/host-api.ts';
import type { GuestPort } from '#node/hypervisor/guest-lines.ts';
import type { Domain } from '#node/hypervisor/hypervisor.ts';
import type { DiskContent, DiskUpload } from '#node/volumes-port.ts';

/** The guest runs without one, whatever its spec says today. */
export class NoDisplay extends Error {
  override readonly name = 'NoDisplay';
}

export interface EndpointAgent {
  /** The domain of this instance on this node; undefined = there is none, or it was removed. */
  find(namespace: string, vmiName: string): Domain | undefined;
  /** These take a Domain's id, act once its turn comes, and reject with HypervisorError. */
  pause(id: string): Promise<void>;
  resume(id: string): Promise<void>;
  softReboot(id: string): Promise<void>;
  reset(id: string): Promise<void>;
  /** As freeze of the hypervisor; both reject with GuestAgentError, too. */
  freeze(id: string, seconds: number): Promise<void>;
  unfreeze(id: string): Promise<void>;
  /** What the guest's agent says; rejects with GuestAgentError. */
  readGuest(id: string, what: GuestRead): Promise<object>;
  /** Both directions of the serial console; ends with the domain. */
  openConsole(id: string): Promise<Duplex>;
  /** A connection to the display, which speaks RFB; ends with the domain. Rejects with NoDisplay, too. */
  openDisplay(id: string): Promise<Duplex>;
  /** What the display shows now, as PNG. `moveCursor`: wakes it up before. Rejects with NoDisplay, too. */
  screenshot(id: string, options: { readonly moveCursor: boolean }): Promise<Buffer>;
  /** A connection to a port of the guest; chunks are datagrams where the protocol has such. */
  openPort(id: string, port: GuestPort): Promise<Duplex>;
  /** undefined = no such pod on this node, or no such container in it. */
  logs(namespace: string, pod: string, container: string): ContainerLog | undefined;
  /** Absent where disks are only pretended. */
  readonly disks?: DiskDoor;
  /** Absent where the node does not serve the host API. */
  readonly host?: HostApi;
  /** Absent where guests stay where they are. */
  readonly migrations?: MigrationGate;
}

/** Where guests come in from other nodes, and where these ask what became of one. */
export interface MigrationGate {
  /** `from`: the node at the other end, as its certificate says. Resolves when all is said; the stream is closed then. */
  accept(from: string, stream: Duplex): Promise<void>;
}

/** The content of the disks behind claims, while no guest has them. Both reject with DiskRefused where one has. */
export interface DiskDoor {
  open(namespace: string, claim: string): Promise<DiskContent>;
  replace(namespace: string, claim: string): Promise<DiskUpload>;
}

export interface HostApi {
  /** Bad parameters are no errors: the answer says what is wrong with them. */
  call(verb: HostVerb, parameters: Readonly<Record<string, unknown>>, options: HostCallOptions): Promise<HostAnswer>;
}

export interface HostCallOptions {
  /** Whoever asked has gone. */
  readonly signal: AbortSignal;
}

/** What a container has written; bounded by whoever keeps it. */
export interface ContainerLog {
  /** Whether each line begins with its time (RFC 3339) and a space. */
  readonly timed: boolean;
  read(): Promise<Buffer>;
  /** First one chunk with what `read` would give (perhaps empty), then what comes; ends with the container or the signal. */
  follow(signal: AbortSignal): AsyncIterable<Buffer>;
}
