/**
 * Lines into a guest besides its console: its ports, and its agent. The guest is a stranger at the other end: whatever
 * it answers is of unknown shape and bounded in size and time.
 */
import type { Duplex } from 'node:stream';

export interface GuestPort {
  readonly port: number;
  readonly protocol: 'tcp' | 'udp';
}

export interface OpenPortOptions {
  /** How long the guest may take to accept; ten seconds unless set. */
  readonly timeoutMs?: number;
  readonly signal?: AbortSignal | undefined;
}

/** A command of QEMU's guest agent protocol. */
export interface AgentCommand {
  readonly execute: string;
  readonly arguments?: Readonly<Record<string, unknown>>;
}

export interface AskAgentOptions {
  /** Five seconds unless set. */
  readonly timeoutMs?: number;
}

/**
 * Why the agent gave no answer. NoChannel: the guest has no line to one. NotConnected: nobody is at the other end of it.
 * NoAnswer: none in time, or nonsense. Refused: an answer, and it is no.
 */
export type AgentFault = 'NoChannel' | 'NotConnected' | 'NoAnswer' | 'Refused';

export class GuestAgentError extends Error {
  override readonly name = 'GuestAgentError';
  readonly fault: AgentFault;

  constructor(fault: AgentFault, message: string, options?: { cause?: unknown }) {
    super(message, options);
    this.fault = fault;
  }
}

export interface FreezeOptions {
  /** It thaws by itself after that, whoever is or is not there to see to it. */
  readonly timeoutMs: number;
  /** `snapshot`: for one call only, and of no use to the next process. */
  readonly why: 'snapshot' | 'asked';
}

export interface GuestLines {
  /**
   * A connection to a port of the guest through its first interface in user mode; it has been accepted when it resolves.
   * Of a udp port, each chunk is a datagram. It ends with the domain, or when either side hangs up.
   */
  openPort(id: string, port: GuestPort, options?: OpenPortOptions): Promise<Duplex>;
  /** One command at a time for each guest; throws GuestAgentError. */
  askAgent(id: string, command: AgentCommand, options?: AskAgentOptions): Promise<unknown>;
  /**
   * Freezes the guest's file systems by its agent: nothing is written until `thaw`, or until its time is over. Whatever
   * fails, it is thawed again. Throws GuestAgentError; asked again while it is frozen, only the time is another.
   */
  freeze(id: string, options: FreezeOptions): Promise<void>;
  /** Fine where it is not frozen. */
  thaw(id: string): Promise<void>;
}
